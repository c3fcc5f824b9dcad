"""LeaveGroup through a node: one member or several, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import joined
from apis.guarded import ADMIN, G_DENIED, Guarded

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeGroupsRequest, LeaveGroupRequest

EXAMPLE = LeaveGroupRequest(group_id="g"), None


def state(node: Guarded, group: str) -> str:
    (described,) = node.ask(DescribeGroupsRequest(groups=[group]), principal=ADMIN).groups
    found: str = described.group_state
    return found


@pytest.mark.parametrize("version", [0, 2])
def test_up_to_version_2_one_member_leaves(node: Guarded, version: int) -> None:
    group = f"one-{version}"
    member = joined(node, group)
    stranger = LeaveGroupRequest(group_id=group, member_id="nobody")
    assert node.ask(stranger, version, ADMIN).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert state(node, group) == "Stable"
    request = LeaveGroupRequest(group_id=group, member_id=member.id)
    assert node.ask(request, version, ADMIN).error_code == ErrorCode.NONE
    assert state(node, group) == "Empty"


@pytest.mark.parametrize("version", [3, 5])
def test_from_version_3_on_several_leave_each_with_a_result(node: Guarded, version: int) -> None:
    group = f"several-{version}"
    member = joined(node, group)
    named = [LeaveGroupRequest.MemberIdentity(member_id=each) for each in ("nobody", member.id)]
    answer = node.ask(LeaveGroupRequest(group_id=group, members=named), version, ADMIN)
    assert answer.error_code == ErrorCode.NONE
    assert [one.error_code for one in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert state(node, group) == "Empty"


def test_a_client_that_must_not_read_the_group_makes_nobody_leave(node: Guarded) -> None:
    member = joined(node, "g")
    named = [LeaveGroupRequest.MemberIdentity(member_id=member.id)]
    assert node.ask(LeaveGroupRequest(group_id="g", members=named)).error_code == G_DENIED
    assert state(node, "g") == "Stable"
