"""What the record of an election that may lose records says stays with its partition."""

from __future__ import annotations

from heirlog.metadata.apply import apply_all, image_of_snapshot
from heirlog.metadata.basis import EARLIER_MAX, Basis
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.metadata_record import decode_record, encode_record
from heirlog.protocol.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from heirlog.protocol.types import Uuid

TOPIC = Uuid(b"topic-id-of-foo!")


def elected(leader_epoch: int) -> PartitionChangeRecord:
    answer = PartitionChangeRecord.ReplicaAnswer(
        broker_id=2, broker_epoch=12, last_written_leader_epoch=4, log_end_offset=leader_epoch * 100
    )
    received = PartitionChangeRecord.ElectionBasis(
        basis=Basis.RECOVERED.number,
        leader=2,
        leader_epoch=leader_epoch,
        end_offset=leader_epoch * 100,
        controller_epoch=3,
        timestamp_ms=1_700_000_000_000,
        replicas=[answer],
    )
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2, election_basis=received)


def image_after(*records: PartitionChangeRecord) -> Image:
    image = Image()
    begin = PartitionRecord(
        topic_id=TOPIC, partition_id=0, replicas=[1, 2], isr=[1], leader=1, leader_epoch=0, partition_epoch=0
    )
    apply_all(image, [TopicRecord(name="foo", topic_id=TOPIC), begin, *records], 0, 1)
    return image


def partition(image: Image) -> PartitionRegistration:
    found = image.partition(TOPIC, 0)
    assert found is not None
    return found


def epochs(image: Image) -> tuple[int | None, list[int]]:
    state = partition(image)
    return state.basis and state.basis.leader_epoch, [basis.leader_epoch for basis in state.earlier]


def test_the_newest_election_stays_and_those_before_it_as_well() -> None:
    image = image_after(elected(1), elected(2), elected(3))
    assert epochs(image) == (3, [2, 1])


def test_a_clean_election_changes_nothing_about_it() -> None:
    image = image_after(elected(1), PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1))
    assert epochs(image) == (1, [])


def test_only_so_many_are_remembered() -> None:
    image = image_after(*(elected(epoch) for epoch in range(1, EARLIER_MAX + 4)))
    assert epochs(image) == (EARLIER_MAX + 3, list(range(EARLIER_MAX + 2, 2, -1)))


def test_a_snapshot_keeps_them_also_as_bytes() -> None:
    image = image_after(elected(1), elected(2))
    records = [
        decode_record(encode_record(record, 2)) if isinstance(record, PartitionRecord) else record
        for record in image.records()
    ]
    again = image_of_snapshot(records, image.offset, image.epoch)
    assert partition(again) == partition(image)
    basis = partition(again).basis
    assert basis is not None and basis.replicas[0].end_offset == 200 and basis.basis is Basis.RECOVERED
