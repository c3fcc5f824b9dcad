"""ListOffsets, OffsetForLeaderEpoch and InitProducerId."""

from __future__ import annotations

import pytest

from heirlog.broker.leader_epochs import end_of
from heirlog.broker.list_offsets import offset_for
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import AllocateProducerIdsResponse, InitProducerIdRequest, ListOffsetsRequest

from .fakes import FakeEnv, Rig, answer_of, batch, context, partition_on, state

FIRST_MS = 1_700_000_000_000


def test_the_named_positions_of_a_partition() -> None:
    rig = Rig().started()
    partition = rig.show(state([1]))
    rig.produce(1, batch(3))
    assert offset_for(partition, -1, -1, False).offset == 3
    assert offset_for(partition, -2, -1, False).offset == 0
    assert offset_for(partition, -4, -1, False).offset == 0
    assert offset_for(partition, -5, -1, False).offset == -1
    newest = offset_for(partition, -3, -1, False)
    assert (newest.offset, newest.timestamp, newest.leader_epoch) == (2, FIRST_MS + 2, 5)


def test_the_newest_timestamp_is_of_a_record_that_can_be_read() -> None:
    rig = Rig().started()
    partition = rig.show(state([1]))
    rig.produce(1, encode_batch([(None, b"newest", (), FIRST_MS + 1000)]))
    rig.produce(1, batch(2))
    assert offset_for(partition, -3, -1, False).offset == 0
    partition.log.increment_log_start(1)
    assert offset_for(partition, -3, -1, False).offset == 2
    partition.log.increment_log_start(3)
    newest = offset_for(partition, -3, -1, False)
    assert (newest.offset, newest.timestamp, newest.leader_epoch) == (-1, -1, -1)


def test_a_timestamp_finds_the_first_record_that_is_not_older() -> None:
    rig = Rig().started()
    partition = rig.show(state([1]))
    rig.produce(1, batch(3))
    assert offset_for(partition, FIRST_MS + 1, -1, False).offset == 1
    assert offset_for(partition, FIRST_MS + 9, -1, False).offset == -1


def test_followers_see_the_end_of_the_log_and_consumers_the_watermark() -> None:
    rig = Rig().started()
    partition = rig.show(state([1, 2]))
    rig.produce(1, batch(3))
    assert offset_for(partition, -1, -1, True).offset == 3
    assert offset_for(partition, -1, -1, False).offset == 0


def test_latest_is_not_told_before_the_watermark_has_reached_the_leaders_own_epoch() -> None:
    partition = partition_on(FakeEnv(), end_offset=10, high_watermark=4)
    partition.become_leader(state([1, 2]), 1, 0)
    with pytest.raises(KafkaError) as refused:
        offset_for(partition, -1, -1, False)
    assert refused.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert offset_for(partition, -1, -1, True).offset == 10


def test_a_partition_that_is_named_twice_is_refused() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    twice = [ListOffsetsRequest.ListOffsetsPartition(timestamp=position) for position in (-1, -2)]
    topic = ListOffsetsRequest.ListOffsetsTopic(name="foo", partitions=twice)
    (answered,) = rig.broker.list_offsets(ListOffsetsRequest(topics=[topic]), context(11)).topics
    assert {partition.error_code for partition in answered.partitions} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_old_clients_get_the_error_that_they_know(version: int, code: ErrorCode) -> None:
    rig = Rig().started()
    partition = rig.show(state([1, 2]))
    rig.produce(1)
    partition.leader_epoch_start_offset = 1
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsRequest.ListOffsetsTopic(name="foo", partitions=[asked])]
    )
    answer = rig.broker.list_offsets(request, context(version)).topics[0].partitions[0]
    assert answer.error_code == code


def test_a_consumer_at_the_former_leaders_watermark_is_not_told_of_a_truncation() -> None:
    rig = Rig().started()
    rig.show(state([1, 2]))
    rig.produce(1, batch(3))
    # elected again before a follower has fetched: the watermark is 0, and everything to 3 may have been read already
    partition = rig.show(state([1, 2], leader_epoch=6, partition_epoch=2))
    assert partition.high_watermark == 0
    assert end_of(partition, 5, 6).end_offset == 3
    with pytest.raises(KafkaError) as refused:
        end_of(partition, 5, 5)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH


def test_producer_ids_come_from_a_block_of_the_controller() -> None:
    rig = Rig().started()
    first = rig.broker.init_producer_id(InitProducerIdRequest(), context(5))
    second = rig.broker.init_producer_id(InitProducerIdRequest(), context(5))
    sent = rig.env.take("forward")
    assert sent.request.broker_epoch == 101
    sent.on_result(AllocateProducerIdsResponse(producer_id_start=2000, producer_id_len=2))
    assert [(r.producer_id, r.producer_epoch) for r in (answer_of(first), answer_of(second))] == [(2000, 0), (2001, 0)]
    rig.broker.init_producer_id(InitProducerIdRequest(), context(5))
    assert rig.env.take("forward")


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 1}])
def test_a_producer_that_names_half_of_itself_is_refused(half: dict[str, int]) -> None:
    rig = Rig().started()
    assert rig.broker.init_producer_id(InitProducerIdRequest(**half), context(5)).error_code == (
        ErrorCode.INVALID_REQUEST
    )
