"""Which producers a partition remembers."""

from __future__ import annotations

from typing import Any

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest

from .fakes import Rig, batch, state


def ask(rig: Rig, *indexes: int, topic: str = "foo") -> Any:
    request = DescribeProducersRequest(
        topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    return rig.broker.describe_producers(request).topics[0].partitions


def test_idempotent_producers_are_listed_by_id() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1, batch(1))
    rig.produce(1, batch(2, producer_id=9, producer_epoch=0, base_sequence=0))
    rig.produce(1, batch(3, producer_id=7, producer_epoch=4, base_sequence=0))
    (partition,) = ask(rig, 0)
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in partition.active_producers
    ] == [(7, 4, 2, -1, -1), (9, 0, 1, -1, -1)]
    assert all(p.last_timestamp > 0 for p in partition.active_producers)


def test_a_follower_answers_too() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1, batch(2, producer_id=9, producer_epoch=0, base_sequence=0))
    rig.show(state([1, 2], leader=2, leader_epoch=6, partition_epoch=2))
    (partition,) = ask(rig, 0)
    assert [p.producer_id for p in partition.active_producers] == [9]


def test_partitions_that_are_not_here_say_why() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.set_partition(state([2, 3], leader=2), index=1)
    rig.publish()
    rig.broker.replicas.directories.failed(rig.directories[0], OSError("EIO"))
    codes = [ErrorCode(partition.error_code).name for partition in ask(rig, 0, 1, 9)]
    assert codes == ["KAFKA_STORAGE_ERROR", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]
    (unheard,) = ask(rig, 0, topic="no name!")
    assert unheard.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ErrorCode(ask(rig, 0, topic="nowhere")[0].error_code) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
