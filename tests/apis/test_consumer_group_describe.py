"""ConsumerGroupDescribe through a node: versions, and what a client may see."""

from __future__ import annotations

from typing import Any

from apis.groups import commit, coordinate
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import joined
from apis.test_consumer_group_heartbeat import joining

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ConsumerGroupDescribeRequest

EXAMPLE = ConsumerGroupDescribeRequest(group_ids=["g"]), None


def described(node: Guarded, group: str, version: int = 1, principal: str = ADMIN, **more: Any) -> Any:
    (found,) = node.ask(ConsumerGroupDescribeRequest(group_ids=[group], **more), version, principal).groups
    return found


def test_version_1_names_the_protocol_of_each_member(node: Guarded) -> None:
    coordinate(node)
    node.ask(joining("types"), principal=ADMIN)
    assert [member.member_type for member in described(node, "types", 0).members] == [-1]
    group = described(node, "types", include_authorized_operations=True)
    assert [member.member_type for member in group.members] == [1]
    assert [member.subscribed_topic_regex for member in group.members] == [""], "without one, as on Apache Kafka"
    assert group.group_state == "Stable" and group.authorized_operations > 0


def test_a_group_of_another_kind_does_not_exist_here(node: Guarded) -> None:
    commit(node, "classic")
    joined(node, "shared")
    for name, said in (
        ("classic", "is not a consumer group"),
        ("shared", "is not a consumer group"),
        ("nothing", "not found"),
    ):
        found = described(node, name)
        assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND and said in found.error_message
    assert described(node, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_a_client_sees_a_group_only_if_it_may_describe_all_its_topics(node: Guarded) -> None:
    coordinate(node)
    node.ask(joining("acl", subscribed_topic_names=["t", "hidden"]), principal=ADMIN)
    alice = "User:alice"
    assert described(node, "acl", principal=alice).error_code == G_DENIED
    node.allow(AclOperation.DESCRIBE, GROUP, "acl")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    refused = described(node, "acl", principal=alice)
    assert (refused.error_code, refused.members) == (T_DENIED, [])
    node.allow(AclOperation.DESCRIBE, TOPIC, "hidden")
    assert len(described(node, "acl", principal=alice).members) == 1
