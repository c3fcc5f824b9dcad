"""A member of the consumer protocol: what it sends next, and what each answer means to it."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.client.consumer_groups import ConsumerProtocolMember
from heirlog.client.groups import Step
from heirlog.client.offsets import CommittedOffset
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ConsumerGroupHeartbeatResponse

TOPIC = b"t" * 16


def member(**more: Any) -> ConsumerProtocolMember:
    return ConsumerProtocolMember("g", "m", topics=["t"], rebalance_timeout_ms=1000, **more)


def answer(epoch: int, *partitions: int, same: bool = False) -> ConsumerGroupHeartbeatResponse:
    Topic = ConsumerGroupHeartbeatResponse.TopicPartitions
    topics = [Topic(topic_id=TOPIC, partitions=list(partitions))] if partitions else []
    assignment = None if same else ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=topics)
    return ConsumerGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=500, assignment=assignment)


def owned(one: ConsumerProtocolMember) -> list[int]:
    return sorted(one.owned.get(TOPIC, ()))


def test_it_joins_with_everything_and_then_says_only_what_is_new() -> None:
    one = member(instance_id="i")
    request = one.request()
    assert (request.member_epoch, request.rebalance_timeout_ms, request.topic_partitions) == (0, 1000, [])
    assert (request.subscribed_topic_names, request.instance_id) == (["t"], "i")
    assert one.answered(request, answer(1, 0, 1)) is Step.HEARTBEAT
    assert owned(one) == [0, 1] and one.interval_ms == 500
    acknowledgement = one.request()
    assert acknowledgement.topic_partitions is not None and acknowledgement.subscribed_topic_names is None
    one.answered(acknowledgement, answer(1, same=True))
    assert one.request().topic_partitions is None


def test_partitions_are_given_up_before_the_coordinator_is_told() -> None:
    one = member()
    one.answered(one.request(), answer(1, 0, 1))
    one.answered(one.request(), answer(1, 0))
    assert one.revoking == {TOPIC: {1}} and owned(one) == [0, 1]
    assert one.request().topic_partitions is None, "nothing is confirmed yet"
    one.revoked()
    (topic,) = one.request().topic_partitions or ()
    assert topic.partitions == [0] and owned(one) == [0]


def test_what_is_given_up_while_a_heartbeat_is_under_way_is_said_with_the_next_one() -> None:
    one = member()
    one.answered(one.request(), answer(1, 0, 1))
    acknowledgement = one.request()
    one.answered(acknowledgement, answer(1, 0))
    under_way = one.request()
    one.revoked()
    one.answered(under_way, answer(1, same=True))
    (topic,) = one.request().topic_partitions or ()
    assert topic.partitions == [0]


def test_after_a_lost_answer_it_says_everything_again_at_the_same_epoch() -> None:
    one = member()
    one.answered(one.request(), answer(3, 0))
    assert one.unanswered(one.request()) is Step.FIND_COORDINATOR
    request = one.request()
    assert (request.member_epoch, request.rebalance_timeout_ms) == (3, 1000)
    assert request.topic_partitions is not None


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_at_once(code: ErrorCode) -> None:
    one = member()
    one.answered(one.request(), answer(3, 0))
    old = one.request()
    assert one.answered(old, ConsumerGroupHeartbeatResponse(error_code=code)) is Step.SEND
    assert owned(one) == [] and one.request().member_epoch == 0
    assert one.answered(old, answer(3, 5)) is None, "an answer to an earlier epoch"


def test_other_errors() -> None:
    one = member()
    for code, step in (
        (ErrorCode.NOT_COORDINATOR, Step.FIND_COORDINATOR),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, Step.PAUSE),
    ):
        assert one.answered(one.request(), ConsumerGroupHeartbeatResponse(error_code=code)) is step
    with pytest.raises(KafkaError):
        one.answered(one.request(), ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNRELEASED_INSTANCE_ID))


def test_it_leaves_for_good_or_for_a_while_and_commits_in_its_epoch() -> None:
    one = member(instance_id="i")
    one.answered(one.request(), answer(3, 0))
    commit = one.commit({("t", 0): CommittedOffset(5)})
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (3, "m")
    assert one.leave(for_a_while=True).member_epoch == -2
    assert one.leave().member_epoch == -1 and one.request().member_epoch == 0
