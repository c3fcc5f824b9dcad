"""Which member of a consumer group reads which partition: the four strategies of Kafka's clients. No I/O.

    range                 each topic's partitions in as many runs as it has readers, the first ones longer by one
    roundrobin            all partitions in turn, to the next member that reads the topic
    sticky                as even as possible; of that, what leaves most partitions where they are
    cooperative-sticky    as sticky, in two steps: a member keeps its partitions while the group rebalances. A partition
                          that moves is given up by one member first, and assigned to another in the next generation

The leader of a generation assigns, so all members need the same formats, and not the same code. With the first three
strategies a member stops reading before it joins again ("eager"). Trap: with cooperative-sticky a partition that
another member still owns must not be assigned, or both read it (`_withheld`). And what a member says it owns counts
only if no other member has owned it in a later generation: it may have been out of the group meanwhile (KIP-792).

Source: KIP-54, KIP-341 (sticky), KIP-429 (cooperative), KIP-792; RangeAssignor and RoundRobinAssignor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import cycle

from heirlog.client.offsets import TopicPartition
from heirlog.protocol.consumer_protocol import (
    OwnedPartitions,
    assignment,
    owned_data,
    owned_in_subscription,
    owned_in_user_data,
    subscribed_topics,
    subscription,
)


class AssignmentStrategy(StrEnum):
    """The names of the protocols in JoinGroup."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"


JAVA_CLASSES = {
    f"org.apache.kafka.clients.consumer.{name}Assignor": strategy
    for name, strategy in (
        ("Range", AssignmentStrategy.RANGE),
        ("RoundRobin", AssignmentStrategy.ROUND_ROBIN),
        ("Sticky", AssignmentStrategy.STICKY),
        ("CooperativeSticky", AssignmentStrategy.COOPERATIVE_STICKY),
    )
}


def is_cooperative(strategies: Sequence[AssignmentStrategy]) -> bool:
    """Whether a member that supports these keeps its partitions while the group rebalances. As in Java clients, one
    that supports an eager strategy too must not: the group may choose that one.
    """
    return list(strategies) == [AssignmentStrategy.COOPERATIVE_STICKY]


def member_metadata(
    strategies: Sequence[AssignmentStrategy], topics: Iterable[str], owned: OwnedPartitions
) -> dict[str, bytes]:
    """For JoinGroup. owned: what the member was assigned last."""
    names = list(topics)
    made = {str(strategy): subscription(names) for strategy in strategies}
    if AssignmentStrategy.STICKY in strategies:
        made[AssignmentStrategy.STICKY] = subscription(names, user_data=owned_data(owned))
    if AssignmentStrategy.COOPERATIVE_STICKY in strategies:
        kept = owned if is_cooperative(strategies) else OwnedPartitions(generation=owned.generation)
        made[AssignmentStrategy.COOPERATIVE_STICKY] = subscription(names, owned=kept)
    return made


def assign(strategy: str, subscriptions: Mapping[str, bytes], partitions: Mapping[str, int]) -> dict[str, bytes]:
    """The assignment of each member.

    subscriptions: by member id. partitions: how many each topic has; topics that are missing here do not exist.
    """
    readers = {member: subscribed_topics(data) or frozenset() for member, data in sorted(subscriptions.items())}
    shares: Mapping[str, Iterable[TopicPartition]]
    if strategy == AssignmentStrategy.RANGE:
        shares = _range(readers, partitions)
    elif strategy == AssignmentStrategy.ROUND_ROBIN:
        shares = _round_robin(readers, partitions)
    elif strategy == AssignmentStrategy.STICKY:
        owned = {member: owned_in_user_data(data) for member, data in subscriptions.items()}
        shares = _sticky(readers, partitions, owned)
    elif strategy == AssignmentStrategy.COOPERATIVE_STICKY:
        owned = {member: owned_in_subscription(data) for member, data in subscriptions.items()}
        shares = _withheld(_sticky(readers, partitions, owned), owned)
    else:
        raise ValueError(f"{strategy} is not a strategy that this client offers to a group")
    return {member: assignment(_by_topic(share)) for member, share in shares.items()}


def _range(readers: Mapping[str, frozenset[str]], partitions: Mapping[str, int]) -> dict[str, list[TopicPartition]]:
    shares: dict[str, list[TopicPartition]] = {member: [] for member in readers}
    for topic, count in partitions.items():
        sharing = [member for member, topics in readers.items() if topic in topics]
        first = 0
        for index, member in enumerate(sharing):
            size = count // len(sharing) + (index < count % len(sharing))
            shares[member] += [(topic, number) for number in range(first, first + size)]
            first += size
    return shares


def _round_robin(
    readers: Mapping[str, frozenset[str]], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    shares: dict[str, list[TopicPartition]] = {member: [] for member in readers}
    turns = cycle(readers)
    read = frozenset[str]().union(*readers.values())
    for topic, number in _all_partitions(partitions):
        if topic in read:
            # without a reader the turns would never end
            shares[next(member for member in turns if topic in readers[member])].append((topic, number))
    return shares


def _sticky(
    readers: Mapping[str, frozenset[str]], partitions: Mapping[str, int], owned: Mapping[str, OwnedPartitions]
) -> dict[str, set[TopicPartition]]:
    """No member has two more than another member that could read one of them."""
    of_topic = {topic: [member for member, topics in readers.items() if topic in topics] for topic in partitions}
    everything = _all_partitions(partitions)
    owner = _owners(owned)
    shares: dict[str, set[TopicPartition]] = {member: set() for member in readers}
    free = []
    for at in everything:
        if owner.get(at) in of_topic[at[0]]:
            shares[owner[at]].add(at)
        elif of_topic[at[0]]:
            free.append(at)
    for at in sorted(free, key=lambda one: len(of_topic[one[0]])):
        shares[min(of_topic[at[0]], key=lambda member: len(shares[member]))].add(at)
    while _largest_gives(shares, of_topic):
        pass
    return shares


def _largest_gives(shares: Mapping[str, set[TopicPartition]], of_topic: Mapping[str, Sequence[str]]) -> bool:
    """Whether partitions went from the largest share that has a receiver, as long as it was the largest. A receiver has
    at least two fewer, so each move makes the shares more even, and the moves end.

    If a smaller share gave too, it could become one that receives, and partitions would move without need.
    """
    waiting = sorted(shares, key=lambda one: -len(shares[one]))
    while waiting:
        giver = waiting.pop(0)
        moved = False
        for at in sorted(shares[giver]):
            receiver = min(of_topic[at[0]], key=lambda one: len(shares[one]))
            if len(shares[giver]) - len(shares[receiver]) < 2:
                continue
            shares[giver].remove(at)
            shares[receiver].add(at)
            moved = True
            if any(len(shares[other]) > len(shares[giver]) for other in waiting):
                break
        if moved:
            return True
    return False


def _owners(owned: Mapping[str, OwnedPartitions]) -> dict[TopicPartition, str]:
    """The owner of each partition: of several that claim it, the one of the latest generation; of equals, none."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, one in sorted(owned.items()):
        for at in _places(one):
            generation, before = claims.get(at, (one.generation, member))
            if one.generation > generation:
                claims[at] = (one.generation, member)
            else:
                claims[at] = (generation, None if one.generation == generation and before != member else before)
    return {at: member for at, (_, member) in claims.items() if member is not None}


def _withheld(
    shares: Mapping[str, set[TopicPartition]], owned: Mapping[str, OwnedPartitions]
) -> dict[str, set[TopicPartition]]:
    """Without the partitions that another member has to give up first."""
    owners: dict[TopicPartition, set[str]] = {}
    for member, one in owned.items():
        for at in _places(one):
            owners.setdefault(at, set()).add(member)
    # another owner reads it until it sees this assignment, also one whose claim does not count
    return {member: {at for at in share if owners.get(at, {member}) == {member}} for member, share in shares.items()}


def _places(owned: OwnedPartitions) -> list[TopicPartition]:
    return [(topic, number) for topic, numbers in owned.partitions.items() for number in numbers]


def _all_partitions(partitions: Mapping[str, int]) -> list[TopicPartition]:
    return [(topic, number) for topic, count in sorted(partitions.items()) for number in range(count)]


def _by_topic(share: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(share):
        found.setdefault(topic, []).append(number)
    return found
