"""The membership of a share group: what answers of the coordinator mean for it."""

from __future__ import annotations

import pytest

from heirlog.client.groups import Step
from heirlog.client.share_groups import JOINING, ShareGroupMember
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ShareGroupHeartbeatResponse


def refusal(code: ErrorCode) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code)


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_the_group_does_not_know_any_more_joins_again(code: ErrorCode) -> None:
    member = ShareGroupMember("g", "m", topics=["t"])
    member.answered(ShareGroupHeartbeatResponse(member_id="m", member_epoch=3, heartbeat_interval_ms=500))

    assert member.answered(refusal(code)) is Step.SEND

    request = member.request()
    assert (request.member_epoch, request.subscribed_topic_names) == (JOINING, ["t"])


def test_a_group_id_that_another_kind_of_group_has_is_an_error_for_a_member_that_joins() -> None:
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        ShareGroupMember("g", "m", topics=["t"]).answered(refusal(ErrorCode.GROUP_ID_NOT_FOUND))
