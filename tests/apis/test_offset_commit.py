"""OffsetCommit through a node: names and ids of topics, members that are behind, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.groups import committing, coordinate, joined
from apis.guarded import ADMIN, G_DENIED, GROUP, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import OffsetFetchRequest

EXAMPLE = committing("g", "t"), 9


def codes(answer: Any) -> dict[str, int]:
    return {topic.name: topic.partitions[0].error_code for topic in answer.topics}


def committed(node: Guarded, group: str) -> int:
    asked = OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group_asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[asked])
    (found,) = node.ask(OffsetFetchRequest(groups=[group_asked]), 9, ADMIN).groups
    offset: int = found.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.parametrize("version", [2, 5, 7, 9])
def test_an_offset_is_committed_by_the_topics_name_up_to_version_9(node: Guarded, version: int) -> None:
    coordinate(node)
    assert codes(node.ask(committing("g", "t", offset=10 + version), version, ADMIN)) == {"t": ErrorCode.NONE}
    assert committed(node, "g") == 10 + version
    assert codes(node.ask(committing("g", "none"), version, ADMIN)) == {"none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_version_10_names_topics_by_their_id(node: Guarded) -> None:
    coordinate(node)
    request = committing("by-id", "", "", offset=5)
    request.topics[0].topic_id, request.topics[1].topic_id = node.topic_id("t"), b"n" * 16
    answered = {topic.topic_id: topic.partitions[0].error_code for topic in node.ask(request, 10, ADMIN).topics}
    assert answered == {node.topic_id("t"): ErrorCode.NONE, b"n" * 16: ErrorCode.UNKNOWN_TOPIC_ID}
    assert committed(node, "by-id") == 5


def test_a_member_commits_in_its_own_generation(node: Guarded) -> None:
    member = joined(node, "members")
    for generation, member_id, code in (
        (member.generation, member.id, ErrorCode.NONE),
        (member.generation + 1, member.id, ErrorCode.ILLEGAL_GENERATION),
        (member.generation, "nobody", ErrorCode.UNKNOWN_MEMBER_ID),
        (-1, "", ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        request = committing("members", "t", generation_id_or_member_epoch=generation, member_id=member_id)
        assert codes(node.ask(request, 9, ADMIN)) == {"t": code}


def test_metadata_that_is_too_long_is_refused(node: Guarded) -> None:
    coordinate(node)
    request = committing("long", "t")
    request.topics[0].partitions[0].committed_metadata = "x" * 4097
    assert codes(node.ask(request, 9, ADMIN)) == {"t": ErrorCode.OFFSET_METADATA_TOO_LARGE}


def test_the_group_must_allow_it_first_and_then_each_topic(node: Guarded) -> None:
    coordinate(node)
    node.allow(AclOperation.READ, TOPIC, "t")
    assert codes(node.ask(committing("g", "t", "hidden"), 9)) == {"t": G_DENIED, "hidden": G_DENIED}
    node.allow(AclOperation.READ, GROUP, "g")
    answer = node.ask(committing("g", "hidden", "t", "none", offset=2), 9)
    assert codes(answer) == {"t": 0, "hidden": T_DENIED, "none": T_DENIED}


def test_by_id_each_topic_must_allow_it_too(node: Guarded) -> None:
    coordinate(node)
    node.allow(AclOperation.READ, GROUP, "g")
    node.allow(AclOperation.READ, TOPIC, "t")
    request = committing("g", "", "")
    request.topics[0].topic_id, request.topics[1].topic_id = node.topic_id("t"), node.topic_id("hidden")
    answered = {topic.topic_id: topic.partitions[0].error_code for topic in node.ask(request, 10).topics}
    assert answered == {node.topic_id("t"): ErrorCode.NONE, node.topic_id("hidden"): T_DENIED}
