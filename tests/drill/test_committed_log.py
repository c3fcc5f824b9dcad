"""What a drill reads from a metadata log on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from drill.metadata_logs import TOPIC_ID, committed, created, elr_on

from heirlog.drill.observe import DrillFailure
from heirlog.protocol.records import PartitionChangeRecord, RemoveTopicRecord
from heirlog.protocol.types import Uuid

OTHER_ID = Uuid(bytes(15) + b"\x08")


def test_every_change_of_a_partition_has_its_time_and_both_states(tmp_path: Path) -> None:
    shrunk = PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, isr=[1], eligible_leader_replicas=[2])
    log = committed(tmp_path, [(50, elr_on()), (100, created("t", TOPIC_ID, [1, 2])), (200, [shrunk])])
    first, second = log.changes
    assert (first.at_ms, first.before, first.topic, first.index) == (100, None, "t", 0)
    assert second.at_ms == 200 and second.before == first.after
    assert second.after is not None and (second.after.isr, second.after.elr) == ((1,), (2,))
    assert second.min_isr == 2 and second.elr_enabled


def test_topics_of_one_name_are_told_apart(tmp_path: Path) -> None:
    log = committed(
        tmp_path,
        [
            (100, created("t", TOPIC_ID, [1])),
            (200, [RemoveTopicRecord(topic_id=TOPIC_ID)]),
            (300, created("t", OTHER_ID, [2])),
        ],
    )
    assert [(one.topic_id, one.created_ms, one.removed_ms) for one in log.named("t")] == [
        (TOPIC_ID, 100, 200),
        (OTHER_ID, 300, None),
    ]
    assert [change.after is None for change in log.changes] == [False, True, False]


def test_what_is_not_committed_is_not_read(tmp_path: Path) -> None:
    batches = [(100, created("t", TOPIC_ID, [1])), (200, created("u", OTHER_ID, [1]))]
    assert [one.name for one in committed(tmp_path, batches, end=2).incarnations] == ["t"]


def test_a_log_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DrillFailure, match="ends at offset 2, before 5"):
        committed(tmp_path, [(100, created("t", TOPIC_ID, [1]))], end=5)
