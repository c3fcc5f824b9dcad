"""The membership of a share group: what answers of the coordinator mean for it."""

from __future__ import annotations

import pytest

from heirlog.client.groups import Step
from heirlog.client.share_groups import JOINING, ShareGroupMember
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareGroupHeartbeatResponse
from heirlog.protocol.types import Uuid

TOPIC = Uuid(b"t" * 16)


def refusal(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code)


def answer(epoch: int, partitions: list[int] | None = None) -> ShareGroupHeartbeatResponse:
    """partitions: assigned ones; None: the answer has no assignment."""
    R = ShareGroupHeartbeatResponse
    topics = [R.TopicPartitions(topic_id=TOPIC, partitions=partitions or [])]
    return R(
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval_ms=500,
        assignment=None if partitions is None else R.Assignment(topic_partitions=topics),
    )


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_the_group_does_not_know_any_more_joins_again(code: ErrorCode) -> None:
    member = ShareGroupMember("g", "m", topics=["t"])
    member.answered(answer(3, [0]))

    assert member.answered(refusal(code)) is Step.SEND

    request = member.request()
    assert (request.member_epoch, request.subscribed_topic_names) == (JOINING, ["t"])


def test_a_group_id_that_another_kind_of_group_has_is_an_error_for_a_member_that_joins() -> None:
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        ShareGroupMember("g", "m", topics=["t"]).answered(refusal(ErrorCode.GROUP_ID_NOT_FOUND))


def test_after_a_new_epoch_without_an_assignment_the_member_asks_for_it() -> None:
    """The answer that had it may be lost, and then the coordinator has nothing new to say."""
    member = ShareGroupMember("g", "m", topics=["t"])
    member.answered(answer(1, []))
    assert member.request().subscribed_topic_names is None

    member.answered(answer(2))
    assert member.request().subscribed_topic_names == ["t"]

    member.answered(answer(2, [0, 1]))
    assert member.request().subscribed_topic_names is None
    assert member.assigned == {(TOPIC, 0), (TOPIC, 1)}
