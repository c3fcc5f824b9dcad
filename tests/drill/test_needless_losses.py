"""Which lossy elections the unclean stops of a drill explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drill.metadata_logs import TOPIC_ID, committed, created, elr_on

from heirlog.drill.needless_losses import BEFORE_MS, needless_losses
from heirlog.metadata.basis import Basis
from heirlog.protocol.records import ConfigRecord, PartitionChangeRecord

SHRUNK_MS, ELECTED_MS = 100_000, 110_000


def changed(**fields: Any) -> list[Any]:
    return [PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)]


def elected(basis: Basis) -> list[Any]:
    found = PartitionChangeRecord.ElectionBasis(basis=basis.number, leader=3, leader_epoch=1)
    return changed(leader=3, isr=[3], eligible_leader_replicas=[], election_basis=found)


def found(folder: Path, ends: dict[int, list[int]], *between: Any, basis: Basis = Basis.RECOVERED) -> list[str]:
    log = committed(
        folder / "log",
        [
            (0, elr_on()),
            (1, created("t", TOPIC_ID, [1, 2, 3])),
            (50_000, changed(isr=[1, 2])),
            (SHRUNK_MS, changed(isr=[1], eligible_leader_replicas=[2])),
            *between,
            (ELECTED_MS, elected(basis)),
        ],
    )
    return [finding.sentence for finding in needless_losses(log, ends)]


def test_two_unclean_stops_explain_a_lossy_election_with_min_isr_2(tmp_path: Path) -> None:
    assert found(tmp_path, {1: [SHRUNK_MS + 1], 2: [SHRUNK_MS - 1_000]}) == []


@pytest.mark.parametrize(
    "ends",
    [
        {},
        {1: [SHRUNK_MS + 1]},
        {1: [SHRUNK_MS + 1, SHRUNK_MS + 2]},
        {1: [SHRUNK_MS + 1], 3: [SHRUNK_MS + 1]},
        {1: [SHRUNK_MS + 1], 2: [ELECTED_MS + 1]},
        {1: [SHRUNK_MS + 1], 2: [SHRUNK_MS - BEFORE_MS - 1]},
    ],
)
def test_fewer_do_not(tmp_path: Path, ends: dict[int, list[int]]) -> None:
    (sentence,) = found(tmp_path, ends)
    assert "although of [1, 2] only" in sentence and sentence.endswith("it takes 2")


def test_an_operator_may_elect_at_any_time(tmp_path: Path) -> None:
    assert found(tmp_path, {}, basis=Basis.UNCLEAN) == []


def test_another_min_isr_and_a_move_of_replicas_explain_it(tmp_path: Path) -> None:
    min_isr = [ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="1")]
    assert found(tmp_path, {}, (SHRUNK_MS + 1, min_isr)) == []
    assert found(tmp_path, {}, (SHRUNK_MS + 1, changed(replicas=[1, 2, 3, 4], adding_replicas=[4]))) == []
