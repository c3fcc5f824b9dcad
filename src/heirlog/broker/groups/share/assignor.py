"""The assignor of share groups, `simple`: which member may fetch which partitions.

Each partition gets as many members as there are members per partition, rounded up, so at least one; members get equally
many partitions, or one more. Both hold for the topics together where all members subscribe to the same topics;
otherwise for each topic and its subscribers. Sticky: a member keeps what it had as far as that allows, so a balanced
assignment never changes.

Members and partitions are sorted, where Apache Kafka goes by the order of Java's hash tables: the same numbers, but not
always the same member for a partition.

Source: KIP-932, "SimpleAssignor".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from heirlog.broker.groups.consumer.values import Assignment, assignment_of
from heirlog.protocol.types import Uuid


class ShareMemberToAssign(NamedTuple):
    topics: frozenset[Uuid]
    """Topics with assignable partitions that it subscribes to."""
    target: Assignment
    """Its target so far."""


class PartitionToShare(NamedTuple):
    topic_id: Uuid
    partition: int


def simple(members: Mapping[str, ShareMemberToAssign], topics: Mapping[Uuid, frozenset[int]]) -> dict[str, Assignment]:
    """topics: the partitions that may be assigned."""
    kinds = {member.topics for member in members.values()}
    if len(kinds) == 1:
        rounds = list(kinds)
    else:
        rounds = [frozenset((topic_id,)) for topic_id in sorted(topics)]
    found: dict[str, list[PartitionToShare]] = {member_id: [] for member_id in members}
    for together in rounds:
        wanted = sorted(together & topics.keys())
        partitions = [PartitionToShare(each, number) for each in wanted for number in sorted(topics[each])]
        subscribers = sorted(member_id for member_id, member in members.items() if together <= member.topics)
        if partitions and subscribers:
            had = {each: _within(members[each].target, together, topics) for each in subscribers}
            for member_id, given in _spread(had, partitions).items():
                found[member_id] += given
    return {member_id: _assignment(given) for member_id, given in found.items()}


def _within(
    target: Assignment, together: Iterable[Uuid], topics: Mapping[Uuid, frozenset[int]]
) -> list[PartitionToShare]:
    return [
        PartitionToShare(topic_id, n) for topic_id in sorted(together) for n in sorted(target.get(topic_id, ()))
        if n in topics.get(topic_id, ())
    ]  # fmt: skip


def _spread(
    had: Mapping[str, list[PartitionToShare]], partitions: list[PartitionToShare]
) -> dict[str, list[PartitionToShare]]:
    """had: what each member had."""
    members = list(had)
    sharing = -(-len(members) // len(partitions))
    least, more = divmod(sharing * len(partitions), len(members))
    given: dict[str, list[PartitionToShare]] = {}
    wanted = dict.fromkeys(partitions, sharing)
    for member_id in sorted(members, key=lambda each: -len(had[each])):
        kept = [partition for partition in had[member_id] if wanted[partition]]
        room = least
        if more and len(kept) > least:
            room, more = least + 1, more - 1
        given[member_id] = kept[:room]
        for partition in given[member_id]:
            wanted[partition] -= 1
    loads = [(len(given[member_id]), member_id) for member_id in members]
    heapify(loads)
    for partition, count in wanted.items():
        passed = []
        while count:
            load, member_id = heappop(loads)
            if partition not in given[member_id]:
                given[member_id].append(partition)
                load, count = load + 1, count - 1
            passed.append((load, member_id))
        for each in passed:
            heappush(loads, each)
    return given


def _assignment(partitions: Iterable[PartitionToShare]) -> Assignment:
    return assignment_of((topic_id, (number,)) for topic_id, number in partitions)
