"""DeleteShareGroupOffsets through a node: what is forgotten, and who may."""

from __future__ import annotations

from typing import Any

from apis.groups import commit
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded
from apis.shares import joined, left

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteShareGroupOffsetsRequest

R = DeleteShareGroupOffsetsRequest


def deleting(group: str = "g", *topics: str) -> DeleteShareGroupOffsetsRequest:
    named = [R.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics or ("t",)]
    return R(group_id=group, topics=named)


EXAMPLE = deleting(), None


def codes(answer: Any) -> Any:
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return {topic.topic_name: ErrorCode(topic.error_code) for topic in answer.responses}


def test_a_topic_is_forgotten_once(node: Guarded) -> None:
    left(node, "forgets")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(node.ask(deleting("forgets", "t", "none"), 0, ADMIN)) == {"t": ErrorCode.NONE, "none": unknown}
    again = node.ask(deleting("forgets", "t", "none"), principal=ADMIN)
    assert codes(again) == {"t": unknown, "none": unknown}
    assert [topic.error_message for topic in again.responses] == [
        "There is no offset information to delete.",
        "This server does not host this topic-partition.",
    ]


def test_a_group_with_members_or_without_records_is_refused(node: Guarded) -> None:
    joined(node, "busy")
    assert codes(node.ask(deleting("busy"), principal=ADMIN)) is ErrorCode.NON_EMPTY_GROUP
    commit(node, "classic")
    for name, said in (("classic", "Group classic is not a share group."), ("none", "Group none not found.")):
        refused = node.ask(deleting(name), principal=ADMIN)
        assert (codes(refused), refused.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, said)


def test_a_client_must_be_allowed_to_delete_the_group_and_to_read_the_topic(node: Guarded) -> None:
    left(node, "acl", "t", "hidden")
    assert codes(node.ask(deleting("acl"))) is G_DENIED
    node.allow(AclOperation.DELETE, GROUP, "acl")
    node.allow(AclOperation.READ, TOPIC, "t")
    assert codes(node.ask(deleting("acl", "t", "hidden"))) == {"t": ErrorCode.NONE, "hidden": T_DENIED}
