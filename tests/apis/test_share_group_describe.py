"""ShareGroupDescribe through a node: members and their partitions, and what is hidden."""

from __future__ import annotations

from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import joined

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ShareGroupDescribeRequest

EXAMPLE = ShareGroupDescribeRequest(group_ids=["g"]), None


def test_members_are_shown_with_their_partitions(node: Guarded) -> None:
    epoch = joined(node, "shown")
    (group,) = node.ask(ShareGroupDescribeRequest(group_ids=["shown"]), 1, ADMIN).groups
    (member,) = group.members
    assert (group.group_state, group.group_epoch, group.assignor_name) == ("Stable", epoch, "simple")
    assert (member.member_id, member.member_epoch, member.client_host) == ("m", epoch, "/10.0.0.1")
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("t", [0])]


def test_a_group_is_hidden_without_permission_and_so_are_its_topics(node: Guarded) -> None:
    joined(node, "acl")
    request = ShareGroupDescribeRequest(group_ids=["acl"], include_authorized_operations=True)
    assert [each.error_code for each in node.ask(request).groups] == [G_DENIED]
    node.allow(AclOperation.DESCRIBE, GROUP, "acl")
    assert [each.error_code for each in node.ask(request).groups] == [T_DENIED]
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    (group,) = node.ask(request).groups
    assert (group.error_code, group.authorized_operations) == (ErrorCode.NONE, 1 << AclOperation.DESCRIBE)


def test_what_is_no_share_group_is_not_found(node: Guarded) -> None:
    joined(node, "one")
    found = node.ask(ShareGroupDescribeRequest(group_ids=["none", ""]), principal=ADMIN).groups
    assert [each.error_code for each in found] == [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID]
