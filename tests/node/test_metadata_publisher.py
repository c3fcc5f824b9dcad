from __future__ import annotations

from typing import Any

from heirlog.metadata.apply import image_of_snapshot
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.node.metadata_publisher import MetadataPublisher
from heirlog.node.snapshots import SnapshotTrigger
from heirlog.protocol.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from heirlog.raft.replay import CommittedBatch
from heirlog.raft.values import encode_value

FOO, BAR = b"f" * 16, b"b" * 16
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=27)
NEVER_BYTES = 1 << 30


def topic(topic_id: bytes, name: str) -> list[Any]:
    partition = PartitionRecord(topic_id=topic_id, partition_id=0, replicas=[1], isr=[1], leader=1)
    return [TopicRecord(name=name, topic_id=topic_id), partition]


class Recorder:
    """A publisher and everything it said."""

    def __init__(self, snapshot_bytes: int = NEVER_BYTES) -> None:
        self.applied: list[int] = []
        self.images: list[tuple[Image, ImageJournal]] = []
        self.snapshots: list[tuple[list[Any], int, int]] = []
        self.offset = 0
        self.publisher = MetadataPublisher(
            lambda: self.applied.append(self.publisher.image.offset),
            lambda image, journal: self.images.append((image, journal)),
            SnapshotTrigger(snapshot_bytes, 0, lambda: 0),
            self._snapshot,
        )
        self.refuses_snapshots = False

    def _snapshot(self, records: Any, offset: int, epoch: int) -> bool:
        if self.refuses_snapshots:
            return False
        self.snapshots.append((list(records), offset, epoch))
        return True

    def commit(self, *records: Any) -> None:
        taken = max(1, len(records))
        last_bytes = len(encode_value(records[-1])) if records else 0
        batch = CommittedBatch(self.offset, self.offset + taken - 1, 1, 0, list(records), last_bytes)
        self.offset += taken
        self.publisher.on_commit([batch])


def test_nothing_is_published_before_the_broker_has_caught_up_and_then_all_at_once() -> None:
    recorder = Recorder()
    recorder.commit(LEVEL)
    recorder.commit(*topic(FOO, "foo"))
    recorder.commit(RemoveTopicRecord(topic_id=FOO))
    recorder.commit(*topic(BAR, "bar"))
    assert recorder.images == []
    assert recorder.applied == [0, 2, 3, 5]
    recorder.publisher.publish()
    recorder.publisher.publish()
    ((image, journal),) = recorder.images
    assert sorted(image.topic_ids) == ["bar"]
    assert (BAR, 0) in journal.partitions


def test_a_batch_of_control_records_moves_the_offset_and_publishes_nothing() -> None:
    recorder = Recorder()
    recorder.publisher.publish()
    recorder.commit()
    assert recorder.publisher.image.offset == 0
    assert recorder.images == []


def test_each_commit_is_published_with_what_it_changed() -> None:
    recorder = Recorder()
    recorder.publisher.publish()
    recorder.commit(LEVEL)
    recorder.commit(*topic(FOO, "foo"))
    assert [sorted(journal.partitions) for _, journal in recorder.images] == [[], [(FOO, 0)]]


def test_a_snapshot_in_mid_life_is_published_as_the_difference_to_what_the_broker_knew() -> None:
    recorder = Recorder()
    recorder.commit(LEVEL, *topic(FOO, "foo"))
    recorder.publisher.publish()
    recorder.images.clear()
    recorder.publisher.on_snapshot([LEVEL, *topic(BAR, "bar")], 40, 2)
    ((image, journal),) = recorder.images
    assert image.offset == 40
    assert sorted(journal.partitions) == [(BAR, 0), (FOO, 0)]
    assert journal.partitions[(BAR, 0)] is None, "bar was not there before"
    assert journal.partitions[(FOO, 0)] is not None, "foo was"
    assert image.partition(FOO, 0) is None  # type: ignore[arg-type]


def test_a_snapshot_while_loading_keeps_what_was_collected() -> None:
    recorder = Recorder()
    recorder.commit(LEVEL, *topic(FOO, "foo"))
    recorder.publisher.on_snapshot([LEVEL, *topic(FOO, "foo")], 40, 2)
    recorder.publisher.publish()
    ((_, journal),) = recorder.images
    assert journal.partitions[(FOO, 0)] is None, "the broker never heard of it"  # type: ignore[index]


def test_a_snapshot_is_written_when_enough_was_committed_and_never_inside_a_transaction() -> None:
    recorder = Recorder(snapshot_bytes=1)
    recorder.commit(LEVEL)
    ((records, offset, epoch),) = recorder.snapshots
    assert (offset, epoch) == (0, 1)
    assert image_of_snapshot(records, offset, epoch) == recorder.publisher.image
    recorder.commit(BeginTransactionRecord(name="several batches"), *topic(FOO, "foo"))
    assert len(recorder.snapshots) == 1
    recorder.commit(EndTransactionRecord())
    assert len(recorder.snapshots) == 2


def test_a_snapshot_that_could_not_be_written_is_due_again_at_the_next_commit() -> None:
    recorder = Recorder(snapshot_bytes=20)
    recorder.refuses_snapshots = True
    recorder.commit(LEVEL)
    recorder.commit(*topic(FOO, "foo"))
    recorder.refuses_snapshots = False
    recorder.commit()
    assert len(recorder.snapshots) == 1


def test_bytes_are_counted_from_a_snapshot_that_was_loaded() -> None:
    recorder = Recorder(snapshot_bytes=30)
    recorder.commit(LEVEL)
    recorder.publisher.on_snapshot([LEVEL], 40, 2)
    recorder.offset = 41
    recorder.commit(LEVEL)
    assert recorder.snapshots == []
    recorder.commit(LEVEL)
    assert len(recorder.snapshots) == 1
