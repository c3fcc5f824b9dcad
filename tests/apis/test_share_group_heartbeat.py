"""ShareGroupHeartbeat through a node: who may join, and what members get. `tests/broker/groups/share` has the rules."""

from __future__ import annotations

from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import beating, coordinate_shares, joined, set_share_version

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode

EXAMPLE = beating(), None


def test_below_the_feature_it_is_not_served(node: Guarded) -> None:
    joined(node, "off")
    set_share_version(node, 0)
    assert node.ask(beating("off"), principal=ADMIN).error_code == ErrorCode.UNSUPPORTED_VERSION
    set_share_version(node, 1)
    assert node.ask(beating("off"), principal=ADMIN).error_code == ErrorCode.NONE


def test_a_member_is_assigned_the_topic_once_its_state_is_initialized(node: Guarded) -> None:
    epoch = joined(node, "assigned")
    answer = node.ask(beating("assigned", epoch=epoch), 1, ADMIN)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)


def test_a_member_must_be_allowed_to_read_the_group_and_to_describe_its_topics(node: Guarded) -> None:
    coordinate_shares(node)
    request = beating("acl", subscribed_topic_names=["t", "hidden"])
    assert node.ask(request).error_code == G_DENIED
    node.allow(AclOperation.READ, GROUP, "acl")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    assert node.ask(request).error_code == T_DENIED
    assert node.ask(beating("acl")).error_code == ErrorCode.NONE
