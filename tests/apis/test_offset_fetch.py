"""OffsetFetch through a node: one group or several, names and ids, and clients without permission."""

from __future__ import annotations

import pytest
from apis.groups import commit, coordinate
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetFetchRequest

Group, Topics = OffsetFetchRequest.OffsetFetchRequestGroup, OffsetFetchRequest.OffsetFetchRequestTopics


def of_group(*topics: str, group: str = "g") -> OffsetFetchRequest.OffsetFetchRequestGroup:
    return Group(group_id=group, topics=[Topics(name=name, partition_indexes=[0]) for name in topics])


def of_one(*topics: str, group: str = "g") -> OffsetFetchRequest:
    Topic = OffsetFetchRequest.OffsetFetchRequestTopic
    return OffsetFetchRequest(group_id=group, topics=[Topic(name=name, partition_indexes=[0]) for name in topics])


EXAMPLE = OffsetFetchRequest(groups=[of_group("t")]), 9


def test_up_to_version_7_a_request_asks_for_one_group(node: Guarded) -> None:
    commit(node, "g", offset=4)
    for version in (1, 5, 7):
        (topic,) = node.ask(of_one("t"), version, ADMIN).topics
        assert (topic.name, topic.partitions[0].committed_offset) == ("t", 4)
    (every,) = node.ask(OffsetFetchRequest(group_id="g", topics=None), 7, ADMIN).topics
    assert every.name == "t"


def test_from_version_8_on_it_asks_for_several(node: Guarded) -> None:
    commit(node, "g", offset=4)
    commit(node, "h", offset=6)
    answer = node.ask(OffsetFetchRequest(groups=[of_group("t"), of_group("t", group="h")]), 8, ADMIN)
    offsets = {group.group_id: group.topics[0].partitions[0].committed_offset for group in answer.groups}
    assert offsets == {"g": 4, "h": 6}


def test_version_10_names_topics_by_their_id(node: Guarded) -> None:
    commit(node, "g", offset=4)
    topics = [Topics(topic_id=each, partition_indexes=[0]) for each in (node.topic_id("t"), b"n" * 16)]
    (group,) = node.ask(OffsetFetchRequest(groups=[Group(group_id="g", topics=topics)]), 10, ADMIN).groups
    found = {topic.topic_id: topic.partitions[0] for topic in group.topics}
    assert found[node.topic_id("t")].committed_offset == 4
    assert found[b"n" * 16].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_without_a_commit_has_offset_minus_one(node: Guarded) -> None:
    coordinate(node)
    (topic,) = node.ask(of_one("hidden", group="fresh"), 5, ADMIN).topics
    assert (topic.partitions[0].committed_offset, topic.partitions[0].error_code) == (-1, ErrorCode.NONE)


def test_topics_that_must_not_be_described_are_refused_where_they_are_named_and_else_left_out(node: Guarded) -> None:
    commit(node, "g")
    node.allow(AclOperation.DESCRIBE, GROUP, "g")
    everything = Group(group_id="g", topics=None)
    (group,) = node.ask(OffsetFetchRequest(groups=[of_group("t")]), 9).groups
    assert group.error_code == 0 and group.topics[0].partitions[0].error_code == T_DENIED
    assert node.ask(OffsetFetchRequest(groups=[everything]), 9).groups[0].topics == []
    assert node.ask(OffsetFetchRequest(group_id="g", topics=None), 7).topics == []
    node.allow(AclOperation.READ, TOPIC, "t")
    (group,) = node.ask(OffsetFetchRequest(groups=[everything]), 9).groups
    assert group.topics[0].partitions[0].committed_offset == 1


@pytest.mark.parametrize("version", [1, 2, 7, 8])
def test_a_group_is_refused_where_the_version_has_a_place_for_it(node: Guarded, version: int) -> None:
    asked = OffsetFetchRequest(groups=[of_group("t")]) if version >= 8 else of_one("t")
    answer = node.ask(asked, version)
    if version == 1:
        assert answer.topics[0].partitions[0].error_code == G_DENIED
    elif version < 8:
        assert (answer.error_code, answer.topics) == (G_DENIED, [])
    else:
        assert [(group.error_code, group.topics) for group in answer.groups] == [(G_DENIED, [])]


def test_before_version_8_topics_that_must_not_be_described_are_refused_one_by_one(node: Guarded) -> None:
    commit(node, "g")
    node.allow(AclOperation.DESCRIBE, GROUP, "g")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    answer = node.ask(of_one("hidden", "t"), 7)
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {"t": 0, "hidden": T_DENIED}


def test_by_id_topics_that_must_not_be_described_are_refused_or_left_out_too(node: Guarded) -> None:
    commit(node, "g", "t")
    commit(node, "g", "hidden")
    node.allow(AclOperation.DESCRIBE, GROUP, "g")
    node.allow(AclOperation.DESCRIBE, TOPIC, "t")
    named = [Topics(topic_id=node.topic_id(name), partition_indexes=[0]) for name in ("hidden", "t")]
    for topics, codes in ((named, {"t": 0, "hidden": T_DENIED}), (None, {"t": 0})):
        (group,) = node.ask(OffsetFetchRequest(groups=[Group(group_id="g", topics=topics)]), 10).groups
        found = {topic.topic_id: topic.partitions[0].error_code for topic in group.topics}
        assert found == {node.topic_id(name): code for name, code in codes.items()}
