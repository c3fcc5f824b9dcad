"""What a broker says of its replicas to a controller that recovers a partition."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.broker.replica_log_info import PARTITIONS_MAX
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import BrokerRegistrationResponse, GetReplicaLogInfoRequest

from .fakes import TOPIC_IDS, Rig, batch, restarted, state

TOPIC = TOPIC_IDS["foo"]


def ask(rig: Rig, *indexes: int, topic_id: bytes = TOPIC, broker: int = 1) -> Any:
    request = GetReplicaLogInfoRequest(
        broker_id=broker,
        topic_partitions=[GetReplicaLogInfoRequest.TopicPartitions(topic_id=topic_id, partitions=list(indexes))],
    )
    return rig.broker.replica_log_info(request)


def info(rig: Rig, *indexes: int, **more: Any) -> Any:
    return ask(rig, *indexes, **more).topic_partition_log_info_list[0].partition_log_info


def received(answer: Any) -> tuple[int, int, int]:
    assert answer.error_code == 0
    return answer.last_written_leader_epoch, answer.current_leader_epoch, answer.log_end_offset


def test_an_answer_names_the_epoch_of_the_last_record_and_the_newest_one_known() -> None:
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    rig.produce(1, batch(3))
    rig.show(state([1], leader=-1, leader_epoch=6, partition_epoch=2))
    response = ask(rig, 0)
    assert response.broker_epoch == rig.broker.registered_brokers.broker_epoch >= 0
    assert received(response.topic_partition_log_info_list[0].partition_log_info[0]) == (5, 6, 3)


def test_an_answer_says_whether_the_log_may_lack_records() -> None:
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    partition = rig.broker.replicas.partition((TOPIC, 0))
    assert partition is not None
    assert not info(rig, 0)[0].may_lack_records
    partition.log.may_lack_records = True
    assert info(rig, 0)[0].may_lack_records


@pytest.mark.parametrize(("before", "may_lack"), [(99, False), (101, False), (150, True)])
@pytest.mark.parametrize("seen", ["at-start", "while-registering", "not-before-the-registration"])
def test_a_log_may_lack_records_if_the_cluster_knows_a_later_start_than_the_one_that_stopped_cleanly(
    before: int, may_lack: bool, seen: str
) -> None:
    """Its directory was put back from a backup, whose clean-shutdown file is as old as its logs."""
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    rig.produce(1, batch(3))
    rig = restarted(rig)
    if seen == "at-start":
        rig.set_broker(1, before)
    rig.broker.start()
    rig.env.advance(10)
    registration = rig.env.take("heartbeat")
    assert registration.request.previous_broker_epoch == 101
    if seen == "while-registering":
        rig.set_broker(1, before)
        rig.broker.on_metadata_applied()
        rig.set_broker(1, 200, incarnation_id=rig.broker.lifecycle.incarnation_id)
    registration.on_result(BrokerRegistrationResponse(broker_epoch=200))
    if seen == "not-before-the-registration":
        rig.set_broker(1, before)
        rig.broker.on_metadata_applied()
    (log,) = rig.directories[0].logs.values()
    assert log.may_lack_records is may_lack


def test_an_epoch_that_was_begun_and_never_written_does_not_rank_a_log() -> None:
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    rig.produce(1, batch(3))
    rig.show(state([1], leader_epoch=9, partition_epoch=2))
    rig.show(state([1], leader=-1, leader_epoch=10, partition_epoch=3))
    assert received(info(rig, 0)[0]) == (5, 10, 3)


def test_an_empty_log_has_no_last_epoch() -> None:
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    rig.show(state([1], leader=-1, leader_epoch=6, partition_epoch=2))
    assert received(info(rig, 0)[0]) == (-1, 6, 0)


def test_a_log_that_was_emptied_keeps_its_rank() -> None:
    rig = Rig().started()
    rig.show(state([1], leader_epoch=5))
    rig.produce(1, batch(3))
    partition = rig.broker.replicas.partition((TOPIC, 0))
    assert partition is not None
    partition.log.increment_log_start(3)
    rig.show(state([1], leader=-1, leader_epoch=6, partition_epoch=2))
    assert received(info(rig, 0)[0]) == (5, 6, 3)


def test_partitions_that_are_not_here_say_why() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    rig.set_partition(state([2, 3], leader=2), index=1)
    rig.publish()
    rig.broker.replicas.directories.failed(rig.directories[0], OSError("EIO"))
    codes = [ErrorCode(answer.error_code).name for answer in info(rig, 0, 1, 9)]
    assert codes == ["KAFKA_STORAGE_ERROR", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert info(rig, 0, topic_id=b"x" * 16)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_who_asked_for_another_broker_is_told_so() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    (answer,) = info(rig, 0, broker=7)
    assert answer.error_code == ErrorCode.INVALID_REQUEST and "broker 1" in answer.error_message


def test_a_thousand_partitions_are_answered_and_the_others_put_off() -> None:
    rig = Rig().started()
    rig.show(state([1]))
    answers = info(rig, *range(PARTITIONS_MAX + 2))
    assert [answer.partition for answer in answers] == [*range(PARTITIONS_MAX + 2)]
    assert [answer.error_code == ErrorCode.REQUEST_LIMIT_REACHED for answer in answers[-3:]] == [False, True, True]
