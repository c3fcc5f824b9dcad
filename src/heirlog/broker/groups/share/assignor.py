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
from typing import Any, Final, NamedTuple, TypeVar

from heirlog.broker.groups.consumer.values import Assignment
from heirlog.protocol.types import Uuid


class PartitionToShare(NamedTuple):
    topic_id: Uuid
    partition: int


T = TypeVar("T", int, PartitionToShare)
_NONE: Final[frozenset[Any]] = frozenset()


class ShareMemberToAssign(NamedTuple):
    topics: frozenset[Uuid]
    """Topics with assignable partitions that it subscribes to."""
    target: Assignment
    """Its target so far."""


def simple(members: Mapping[str, ShareMemberToAssign], topics: Mapping[Uuid, frozenset[int]]) -> dict[str, Assignment]:
    """topics: the partitions that may be assigned."""
    kinds = {member.topics for member in members.values()}
    if len(kinds) == 1:
        return _together(members, {topic_id: topics[topic_id] for topic_id in sorted(kinds.pop() & topics.keys())})
    found: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic_id, subscribers in _subscribers(members, topics).items():
        numbers = topics[topic_id]
        had = {each: sorted(members[each].target.get(topic_id, _NONE) & numbers) for each in subscribers}
        for member_id, given in _spread(had, sorted(numbers)).items():
            if given:
                found[member_id][topic_id] = frozenset(given)
    return dict(found)


def _together(
    members: Mapping[str, ShareMemberToAssign], topics: Mapping[Uuid, frozenset[int]]
) -> dict[str, Assignment]:
    """All members subscribe to all of these topics."""
    had = {
        member_id: [
            PartitionToShare(topic_id, number)
            for topic_id, numbers in topics.items()
            for number in sorted(members[member_id].target.get(topic_id, _NONE) & numbers)
        ]
        for member_id in sorted(members)
    }
    partitions = [PartitionToShare(topic_id, number) for topic_id in topics for number in sorted(topics[topic_id])]
    return {member_id: _assignment(given) for member_id, given in _spread(had, partitions).items()}


def _subscribers(members: Mapping[str, ShareMemberToAssign], topics: Iterable[Uuid]) -> dict[Uuid, list[str]]:
    """Of each topic. Looks at each subscription once: members with different ones may have many."""
    found: dict[Uuid, list[str]] = {topic_id: [] for topic_id in sorted(topics)}
    for member_id in sorted(members):
        for topic_id in members[member_id].topics & found.keys():
            found[topic_id].append(member_id)
    return found


def _spread(had: Mapping[str, list[T]], partitions: list[T]) -> dict[str, list[T]]:
    """had: what each member had, of these partitions."""
    given: dict[str, list[T]] = {member_id: [] for member_id in had}
    if not had or not partitions:
        return given
    sharing = -(-len(had) // len(partitions))
    least, more = divmod(sharing * len(partitions), len(had))
    wanted = dict.fromkeys(partitions, sharing)
    for member_id in sorted(had, key=lambda each: -len(had[each])):
        kept = [partition for partition in had[member_id] if wanted[partition]]
        room = least
        if more and len(kept) > least:
            room, more = least + 1, more - 1
        given[member_id] = kept[:room]
        for partition in given[member_id]:
            wanted[partition] -= 1
    short = {partition: count for partition, count in wanted.items() if count}
    if short:
        _hand_out(short, given)
    return given


def _hand_out(short: Mapping[T, int], given: Mapping[str, list[T]]) -> None:
    """short: how many more members each partition needs; those with the least get it."""
    kept = {member_id: frozenset(each) for member_id, each in given.items() if each}
    loads = [(len(each), member_id) for member_id, each in given.items()]
    heapify(loads)
    for partition, count in short.items():
        passed = []
        while count:
            load, member_id = heappop(loads)
            if partition not in kept.get(member_id, _NONE):
                given[member_id].append(partition)
                load, count = load + 1, count - 1
            passed.append((load, member_id))
        for each in passed:
            heappush(loads, each)


def _assignment(partitions: Iterable[PartitionToShare]) -> Assignment:
    numbers: dict[Uuid, list[int]] = {}
    for topic_id, number in partitions:
        numbers.setdefault(topic_id, []).append(number)
    return {topic_id: frozenset(each) for topic_id, each in numbers.items()}
