"""The target assignment: what each member of a group shall have in the end.

The group's assignor is the one that most members prefer; members without a preference do not vote, and a tie goes to
the first name in the alphabet. Without any vote it is the first of `group.consumer.assignors`.

A group is *homogeneous* if no member has a regular expression and all name the same topics, or if all have the same
regular expression and name no topics.

Source: KIP-848.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from heirlog.broker.groups.consumer.assignors import ASSIGNORS, GroupToAssign, MemberToAssign, Targets
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, TargetEpoch, TargetMember
from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.subscriptions import SubscribedTopic
from heirlog.broker.groups.consumer.values import Assignment, ConsumerGroupMember
from heirlog.metadata.survey import Survey

INLINE_MAX = 500
"""Members and partitions of a group that is assigned within the request; a larger one is assigned in slices."""


def preferred_assignor(members: Iterable[ConsumerGroupMember], configured: Sequence[str]) -> str:
    votes = Counter(member.server_assignor for member in members if member.server_assignor in configured)
    if not votes:
        return configured[0]
    most = max(votes.values())
    return min(name for name, count in votes.items() if name is not None and count == most)


def group_to_assign(
    group: ConsumerGroupState,
    members: Mapping[str, ConsumerGroupMember],
    targets: Mapping[str, Assignment],
    topics: Mapping[str, SubscribedTopic],
) -> GroupToAssign:
    """members, targets: of all members, with the change that is being made. topics: all that a member subscribes to."""
    asked = {
        member_id: MemberToAssign(
            instance_id=member.instance_id,
            topics=frozenset(topics[name].topic_id for name in group.topics_of(member) if name in topics),
            target=targets.get(member_id, {}),
        )
        for member_id, member in members.items()
    }
    kinds = {(member.regex, member.topics) for member in members.values()}
    is_homogeneous = len(kinds) == 1 and all(regex is None or not names for regex, names in kinds)
    return GroupToAssign(asked, {topic.topic_id: topic.partition_count for topic in topics.values()}, is_homogeneous)


def computed_targets(assignor: str, group: GroupToAssign) -> Survey[Targets]:
    return ASSIGNORS[assignor](group)


def targets_later(
    group: ConsumerGroupState,
    members: Mapping[str, ConsumerGroupMember],
    targets: Mapping[str, Assignment],
    topics: Mapping[str, SubscribedTopic],
    configured: Sequence[str],
) -> Survey[Targets]:
    """The targets of a large group, as its members are now; nothing is computed before the first step."""
    yield
    assignor = preferred_assignor(members.values(), configured)
    asked = group_to_assign(group, members, targets, topics)
    yield
    return (yield from computed_targets(assignor, asked))


def is_large(member_count: int, topics: Mapping[str, SubscribedTopic]) -> bool:
    return member_count > 1 and member_count + sum(topic.partition_count for topic in topics.values()) > INLINE_MAX


def target_records(
    group: ConsumerGroupState, targets: Mapping[str, Assignment], epoch: int, before: Mapping[str, Assignment]
) -> list[ConsumerGroupRecord]:
    """before: the targets so far. Only members whose target changes get a record."""
    records: list[ConsumerGroupRecord] = [
        TargetMember(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if member_id not in before or before[member_id] != target
    ]
    records.append(TargetEpoch(group.group_id, epoch))
    return records
