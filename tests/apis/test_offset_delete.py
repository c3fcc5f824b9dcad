"""OffsetDelete through a node: offsets that go, groups that do not exist, and clients without permission."""

from __future__ import annotations

from apis.groups import commit, coordinate
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetDeleteRequest, OffsetFetchRequest


def deleting(group: str, *topics: str) -> OffsetDeleteRequest:
    Topic, Partition = OffsetDeleteRequest.OffsetDeleteRequestTopic, OffsetDeleteRequest.OffsetDeleteRequestPartition
    return OffsetDeleteRequest(group_id=group, topics=[Topic(name=name, partitions=[Partition()]) for name in topics])


EXAMPLE = deleting("g", "t"), None


def topics_of(node: Guarded, group: str) -> list[str]:
    return [topic.name for topic in node.ask(OffsetFetchRequest(group_id=group, topics=None), 7, ADMIN).topics]


def test_the_named_offsets_go_and_the_others_stay(node: Guarded) -> None:
    commit(node, "g", "t")
    commit(node, "g", "hidden")
    answer = node.ask(deleting("g", "t"), principal=ADMIN)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, ErrorCode.NONE)
    assert topics_of(node, "g") == ["hidden"]


def test_a_group_that_does_not_exist_is_an_error_of_the_whole_answer(node: Guarded) -> None:
    coordinate(node)
    answer = node.ask(deleting("none", "t"), principal=ADMIN)
    assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_an_unknown_topic_is_refused_alone(node: Guarded) -> None:
    commit(node, "g", "t")
    answer = node.ask(deleting("g", "none", "t"), principal=ADMIN)
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert codes == {"none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": ErrorCode.NONE}


def test_the_group_must_allow_it_first_and_then_each_topic(node: Guarded) -> None:
    commit(node, "g", "t")
    node.allow(AclOperation.READ, TOPIC, "t")
    assert node.ask(deleting("g", "t")).error_code == G_DENIED
    node.allow(AclOperation.DELETE, GROUP, "g")
    answer = node.ask(deleting("g", "hidden", "t"))
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"t": 0, "hidden": T_DENIED}
    # an unknown group is reported before the topics that must not be read
    node.allow(AclOperation.DELETE, GROUP, "none")
    unknown = node.ask(deleting("none", "hidden"))
    assert (unknown.error_code, unknown.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
