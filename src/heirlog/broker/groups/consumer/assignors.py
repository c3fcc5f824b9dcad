"""The assignors of the coordinator: which member shall have which partition.

    range      each topic's partitions in runs, one run per subscriber, the first ones longer by one. Equal numbers of
               different topics meet in one member, for joins. Not sticky
    uniform    every member has the same number of partitions, or one more. Sticky: a member keeps what it has as far
               as that is fair, so a balanced assignment is never changed

`uniform` differs where members subscribe to different topics (*heterogeneous*): then the least loaded subscribers get
the free partitions of a topic, and single partitions move from the most loaded to the least loaded subscriber of a
topic until they differ by at most one.

Apache Kafka's `uniform` goes by the order of Java's hash tables. Here members and topics are sorted: the same counts
and as few moves, but not always the same member for a partition. `range` is equal to Kafka's.

Each assignor is a generator that yields where it may pause, so that a large group does not stall the broker.

Source: KIP-848, "Server side assignor"; KIP-1106 for the order of static members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import islice
from typing import Final

from heirlog.broker.groups.consumer.values import Assignment
from heirlog.metadata.survey import Survey
from heirlog.protocol.types import Uuid

MEMBERS_PER_STEP = 32
"""Members that one step looks at: about a millisecond."""
ROUNDS_MAX = 16
"""Limit of rounds of moves in a heterogeneous group."""


@dataclass(frozen=True, slots=True)
class MemberToAssign:
    instance_id: str | None
    topics: frozenset[Uuid]
    """Existing topics that it subscribes to."""
    target: Assignment
    """Its target so far."""


@dataclass(frozen=True, slots=True)
class GroupToAssign:
    members: Mapping[str, MemberToAssign]
    topics: Mapping[Uuid, int]
    """Number of partitions of each subscribed topic."""
    is_homogeneous: bool
    """All members subscribe to the same topics, in the same way."""


Targets = dict[str, dict[Uuid, frozenset[int]]]


# -- range ------------------------------------------------------------------------------------------------------------


def range_targets(group: GroupToAssign) -> Survey[Targets]:
    members = sorted(group.members, key=lambda each: _static_first(each, group.members[each]))
    targets: Targets = {member_id: {} for member_id in members}
    for topic_id, count in sorted(group.topics.items()):
        subscribers = (
            members if group.is_homogeneous else [each for each in members if topic_id in group.members[each].topics]
        )
        first = 0
        for position, member_id in enumerate(subscribers):
            size = count // len(subscribers) + (position < count % len(subscribers))
            if size:
                targets[member_id][topic_id] = frozenset(range(first, first + size))
            first += size
            if position % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
                yield
        yield
    return targets


def _static_first(member_id: str, member: MemberToAssign) -> tuple[bool, bytes]:
    """Static members by instance, then dynamic ones by id; strings in Java's order, which is that of UTF-16 units."""
    name = member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, name.encode("utf-16-be", "surrogatepass")


# -- uniform ----------------------------------------------------------------------------------------------------------


def uniform_targets(group: GroupToAssign) -> Survey[Targets]:
    chosen = _homogeneous(group) if group.is_homogeneous else _heterogeneous(group)
    return (yield from chosen)


def _homogeneous(group: GroupToAssign) -> Survey[Targets]:
    members = sorted(group.members)
    targets: Targets = {member_id: {} for member_id in members}
    free = {topic_id: set(range(count)) for topic_id, count in sorted(group.topics.items())}
    quota, extras = divmod(sum(group.topics.values()), len(members))
    unfilled: list[tuple[str, int]] = []
    for position, member_id in enumerate(members):
        held = list(_held(group.members[member_id].target, free))
        # a member that does not have one more than the others hands that on, while enough others are left for it
        gets_extra = extras > 0 and (len(held) > quota or len(members) - position <= extras)
        extras -= gets_extra
        most = quota + gets_extra
        _give(targets[member_id], held[:most], free)
        if len(held) < most:
            unfilled.append((member_id, most - len(held)))
        if position % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    rest = ((topic_id, number) for topic_id, numbers in list(free.items()) for number in sorted(numbers))
    for position, (member_id, missing) in enumerate(unfilled):
        _give(targets[member_id], list(islice(rest, missing)), None)
        if position % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    return targets


def _held(target: Assignment, free: Mapping[Uuid, set[int]]) -> Iterator[tuple[Uuid, int]]:
    """What a member has of the partitions that no other one has kept, in order."""
    for topic_id, numbers in sorted(target.items()):
        for number in sorted(numbers & free.get(topic_id, set())):
            yield topic_id, number


def _give(
    target: dict[Uuid, frozenset[int]], parts: list[tuple[Uuid, int]], free: Mapping[Uuid, set[int]] | None
) -> None:
    by_topic: dict[Uuid, set[int]] = {}
    for topic_id, number in parts:
        by_topic.setdefault(topic_id, set()).add(number)
    for topic_id, numbers in by_topic.items():
        target[topic_id] = target.get(topic_id, frozenset()) | numbers
        if free is not None:
            free[topic_id] -= numbers


def _heterogeneous(group: GroupToAssign) -> Survey[Targets]:
    members = sorted(group.members)
    subscribers: dict[Uuid, list[int]] = {topic_id: [] for topic_id in group.topics}
    for index, member_id in enumerate(members):
        for topic_id in group.members[member_id].topics:
            subscribers[topic_id].append(index)
    # most partitions per subscriber first, then fewer subscribers, then the id as Java compares it
    topics = sorted(
        (topic_id for topic_id in group.topics if subscribers[topic_id]),
        key=lambda each: (
            -group.topics[each] / len(subscribers[each]),
            len(subscribers[each]),
            int.from_bytes(each[:8], "big", signed=True),
            int.from_bytes(each[8:], "big", signed=True),
        ),
    )
    loads = [0] * len(members)
    owned: dict[Uuid, dict[int, set[int]]] = {topic_id: {} for topic_id in topics}
    free = {topic_id: set(range(group.topics[topic_id])) for topic_id in topics}
    for index, member_id in enumerate(members):
        member = group.members[member_id]
        for topic_id, number in _held(member.target, free):
            if topic_id in member.topics:
                owned[topic_id].setdefault(index, set()).add(number)
                free[topic_id].discard(number)
                loads[index] += 1
        if index % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
            yield
    for topic_id in topics:
        least = [(loads[index], index) for index in subscribers[topic_id]]
        heapify(least)
        for number in sorted(free[topic_id]):
            _, index = least[0]
            owned[topic_id].setdefault(index, set()).add(number)
            loads[index] += 1
            heapreplace(least, (loads[index], index))
        yield
    for _ in range(ROUNDS_MAX):
        moved = False
        for topic_id in topics:
            moved |= yield from _levelled(owned[topic_id], subscribers[topic_id], loads)
        if not moved:
            break
    targets: Targets = {member_id: {} for member_id in members}
    for topic_id in sorted(topics):
        for index, numbers in owned[topic_id].items():
            if numbers:
                targets[members[index]][topic_id] = frozenset(numbers)
        yield
    return targets


def _levelled(owned: dict[int, set[int]], subscribers: list[int], loads: list[int]) -> Survey[bool]:
    """Moves partitions of one topic until its most and least loaded subscribers differ by at most one."""
    moved = 0
    while True:
        donors = [index for index in subscribers if owned.get(index)]
        if not donors:
            return False
        most = max(donors, key=lambda index: loads[index])
        least = min(subscribers, key=lambda index: loads[index])
        if loads[most] - loads[least] <= 1:
            return moved > 0
        number = max(owned[most])
        owned[most].discard(number)
        owned.setdefault(least, set()).add(number)
        loads[most] -= 1
        loads[least] += 1
        moved += 1
        yield


ASSIGNORS: Final[Mapping[str, Callable[[GroupToAssign], Survey[Targets]]]] = {
    "uniform": uniform_targets,
    "range": range_targets,
}
"""By the name in group.consumer.assignors."""
