"""DescribeGroups through a node: members, groups that do not exist, operations, and groups without permission."""

from __future__ import annotations

import pytest
from apis.groups import commit, coordinate, joined
from apis.guarded import ADMIN, G_DENIED, GROUP, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeGroupsRequest

EXAMPLE = DescribeGroupsRequest(groups=["g"]), None


def test_a_stable_group_has_members_with_their_assignments(node: Guarded) -> None:
    member = joined(node, "g")
    (group,) = node.ask(DescribeGroupsRequest(groups=["g", "g"]), principal=ADMIN).groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (found,) = group.members
    assert (found.member_id, found.member_metadata, found.member_assignment) == (
        member.id,
        b"subscription",
        b"all of it",
    )


@pytest.mark.parametrize(("version", "code"), [(0, 0), (5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_group_that_does_not_exist_is_dead_and_from_version_6_on_an_error(
    node: Guarded, version: int, code: int
) -> None:
    coordinate(node)
    (group,) = node.ask(DescribeGroupsRequest(groups=["none"]), version, ADMIN).groups
    assert (group.group_state, group.error_code) == ("Dead", code)


def test_the_group_without_a_name_is_a_group(node: Guarded) -> None:
    """Old consumers commit under it."""
    commit(node, "")
    (group,) = node.ask(DescribeGroupsRequest(groups=[""]), principal=ADMIN).groups
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Empty")


def test_operations_are_shown_on_request_as_far_as_they_are_allowed(node: Guarded) -> None:
    coordinate(node)
    node.allow(AclOperation.DELETE, GROUP, "g")
    asked = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (group,) = node.ask(asked, 5).groups
    assert group.authorized_operations == 1 << AclOperation.DELETE | 1 << AclOperation.DESCRIBE
    (group,) = node.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert group.authorized_operations == -(2**31)


def test_groups_that_must_not_be_described_are_refused_one_by_one(node: Guarded) -> None:
    joined(node, "h")
    node.allow(AclOperation.READ, GROUP, "h")
    answer = node.ask(DescribeGroupsRequest(groups=["hidden", "h"]))
    assert {group.group_id: group.error_code for group in answer.groups} == {"h": 0, "hidden": G_DENIED}
    assert "an ACL on the group must allow this" in answer.groups[-1].error_message
