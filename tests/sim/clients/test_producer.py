"""The producers of a run are the product's: what its sender does wrong, a run finds."""

from __future__ import annotations

import pytest

from heirlog.client.record_accumulator import NO_SEQUENCE, ProducerBatch, RecordAccumulator
from heirlog.protocol.errors import ErrorCode
from heirlog.sim.run import run_seed

REFUSALS = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
SEEDS = range(1, 11)


def found_in(scenario: str) -> set[str]:
    """The first rule that a seed breaks."""
    for seed in SEEDS:
        violation = run_seed(seed, scenario=scenario).violation
        if violation is not None:
            return {violation.check}
    return set()


def test_a_refusal_that_the_sender_takes_for_an_acknowledgement_is_a_lost_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = RecordAccumulator.answered

    def believing(
        self: RecordAccumulator, batch: ProducerBatch, code: int, message: str | None, retry_at_s: float
    ) -> bool:
        return answered(self, batch, ErrorCode.NONE if code in REFUSALS else code, message, retry_at_s)

    monkeypatch.setattr(RecordAccumulator, "answered", believing)
    assert found_in("swarm") in ({"unseen"}, {"lost-write"})


def test_a_batch_that_is_sent_again_under_another_sequence_is_a_duplicate(monkeypatch: pytest.MonkeyPatch) -> None:
    unanswered = RecordAccumulator.unanswered

    def forgetful(self: RecordAccumulator, batch: ProducerBatch, retry_at_s: float) -> None:
        unanswered(self, batch, retry_at_s)
        batch.sequence = NO_SEQUENCE

    monkeypatch.setattr(RecordAccumulator, "unanswered", forgetful)
    assert found_in("repeated-batches") == {"duplicate"}
