"""The scenario notices a controller that was seeded wrongly."""

from __future__ import annotations

import pytest

from heirlog.controller import seeding
from heirlog.metadata.state import BrokerRegistration, PartitionRegistration
from heirlog.sim.run import run_seed

LAGS_BY_ITS_OWN_COPY_IN_SYNC = 47
"""The only copy left is of a broker that heard nothing of anybody for long, and then stopped cleanly."""


def test_a_seeding_that_believes_the_seats_and_broker_epochs_of_its_copy_breaks_a_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broker(state: BrokerRegistration, **changes: object) -> BrokerRegistration:
        return state

    reset_partition = seeding.reset_partition

    def with_isr_and_elr(state: PartitionRegistration, found_epoch: int) -> PartitionRegistration:
        return state._replace(leader_epoch=reset_partition(state, found_epoch).leader_epoch)

    assert run_seed(LAGS_BY_ITS_OWN_COPY_IN_SYNC, scenario="older-metadata").passed
    monkeypatch.setattr(seeding, "replace", broker)
    monkeypatch.setattr(seeding, "reset_partition", with_isr_and_elr)
    violation = run_seed(LAGS_BY_ITS_OWN_COPY_IN_SYNC, scenario="older-metadata").violation
    assert violation is not None
    assert violation.check == "T4"


def test_after_a_seeding_balanced_keeps_what_aggressive_gives_up_and_sets_apart() -> None:
    balanced, aggressive = (run_seed(1, scenario=name) for name in ("older-metadata", "seeded-aggressive"))
    for report in (balanced, aggressive):
        assert report.passed and report.counters["controller.seeded"] and report.counters["lossy_election"]
    assert not balanced.lost
    assert aggressive.lost and aggressive.counters["log.discarded-records-kept"]
