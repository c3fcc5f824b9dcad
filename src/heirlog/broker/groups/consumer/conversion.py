"""A group changes its protocol while its members are in it, so that an application can be upgraded one by one.

    classic --a member of the consumer protocol joins--> consumer, with classic members in it (`classic_members.py`)
    consumer --the last member of the consumer protocol goes--> classic, which rebalances

`group.consumer.migration.policy` allows both, one or none of them. A group without members changes under every policy.
Every member keeps its partitions: the group epoch begins at the generation, and the generation continues at the epoch.

An upgrade is refused, and the group looks as if it did not exist for the new member, if the group is not one of
consumers, is too large, or has an assignment that the coordinator cannot make itself: one that does not parse, or that
has data of a custom assignor.

Source: KIP-848, "Supporting online consumer group upgrade".
"""

from __future__ import annotations

from collections.abc import Collection

from heirlog.broker.groups.consumer.records import (
    ConsumerGroupRecord,
    CurrentMember,
    GroupEpoch,
    MemberSubscription,
    TargetEpoch,
    TargetMember,
)
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.subscriptions import known_topics, metadata_hash
from heirlog.broker.groups.consumer.values import (
    Assignment,
    ClassicProtocols,
    ConsumerGroupMember,
    MemberAssignment,
    assignment_of,
)
from heirlog.broker.groups.group import ClassicGroup, ClassicGroupMember, GroupState, MemoryUse
from heirlog.metadata.image import Image
from heirlog.protocol.consumer_protocol import (
    CONSUMER,
    assignment,
    read_assignment,
    read_subscription,
    version_of,
)

UPGRADES = ("bidirectional", "upgrade")
DOWNGRADES = ("bidirectional", "downgrade")
"""Values of group.consumer.migration.policy, in lower case."""


def assignment_by_id(image: Image, partitions: dict[str, list[int]]) -> Assignment:
    """Partitions of topics that exist."""
    topics = known_topics(image, partitions)
    return assignment_of((topics[name].topic_id, numbers) for name, numbers in partitions.items() if name in topics)


def assignment_by_name(image: Image, wanted: Assignment) -> dict[str, list[int]]:
    named = ((image.topics.get(topic_id), numbers) for topic_id, numbers in wanted.items())
    return {topic.name: sorted(numbers) for topic, numbers in named if topic is not None}


# -- classic to consumer ----------------------------------------------------------------------------------------------


def upgrade_records(group: ClassicGroup, image: Image, max_size: int) -> list[ConsumerGroupRecord] | None:
    """The records of the consumer group that the classic one becomes; None if it cannot."""
    if group.protocol_type != CONSUMER or len(group.members) > max_size:
        return None
    try:
        members = [_as_consumer(group, member, image) for member in group.members.values()]
    except ValueError:
        return None
    group_id, epoch = group.group_id, group.generation
    names = {name for member, _ in members for name in member.topics}
    records: list[ConsumerGroupRecord] = [MemberSubscription(group_id, each.member_id, each) for each, _ in members]
    records.append(GroupEpoch(group_id, epoch, metadata_hash(known_topics(image, names))))
    records += [TargetMember(group_id, each.member_id, has) for each, has in members]
    records.append(TargetEpoch(group_id, epoch))
    records += [
        CurrentMember(group_id, each.member_id, MemberAssignment(epoch, epoch, assigned=has)) for each, has in members
    ]
    return records


def _as_consumer(
    group: ClassicGroup, member: ClassicGroupMember, image: Image
) -> tuple[ConsumerGroupMember, Assignment]:
    """Raises ValueError."""
    protocol = group.protocol if group.protocol is not None else member.protocols[0][0]
    says = read_subscription(member.subscription(protocol))
    partitions, user_data = read_assignment(member.assignment)
    if user_data:
        raise ValueError("a custom assignor made the assignment")
    converted = ConsumerGroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=says.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=says.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicProtocols(member.session_timeout_ms, tuple(member.protocols)),
    )
    return converted, assignment_by_id(image, partitions)


# -- consumer to classic ----------------------------------------------------------------------------------------------


def may_become_classic(group: ConsumerGroupState, leaving: Collection[str], max_size: int) -> bool:
    """Whether only members of the classic protocol are left, and fit into a classic group."""
    left = [member for member_id, member in group.members.items() if member_id not in leaving]
    return bool(left) and len(left) <= max_size and all(member.classic is not None for member in left)


def as_classic(
    group: ConsumerGroupState, leaving: Collection[str], image: Image, memory_use: MemoryUse, wall_ms: int
) -> ClassicGroup:
    """A stable classic group of the members that stay, with what they shall have."""
    classic = ClassicGroup(group.group_id, memory_use=memory_use, generation=group.epoch)
    for member_id, member in group.members.items():
        if member_id in leaving or member.classic is None:
            continue
        converted = ClassicGroupMember(
            member_id=member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=member.classic.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            protocols=list(member.classic.protocols),
        )
        classic.add(converted, CONSUMER)
        has = assignment_by_name(image, group.target(member_id))
        classic.assign(converted, assignment(has, version_of(converted.protocols[0][1])))
    classic.protocol = classic.select_protocol()
    classic.state, classic.state_since_ms = GroupState.STABLE, wall_ms
    return classic
