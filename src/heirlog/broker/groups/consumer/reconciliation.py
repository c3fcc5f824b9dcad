"""How one member moves from what it has to what it shall have; only its own heartbeats move it.

                                   +------------------------------+
                                   v                              |
    STABLE --it must give up something--> UNREVOKED --it gave it up--> takes what is free:
      ^  |                               PARTITIONS                    everything     -> STABLE
      |  +--nothing to give up, others still have a part of it-------> not everything -> UNRELEASED PARTITIONS
      +----------------------- all of it is free ------------------------------------------+

A member reaches the epoch of the target when it has given up what is not in its target. Until then it stays at its old
epoch, so its commits for partitions that it still has are accepted. What another member has, or must still give up, is
not taken. A move of a partition thus needs three heartbeats: the owner is asked, the owner confirms, the next owner
takes.

Traps.
* A partition that the member itself must give up is not held by another one (KAFKA-19449).
* A member that subscribes to less drops the rest of its target at once, before the next target is computed.
* A state that this version does not know is left only by a member that owns nothing.

Source: KIP-848, "Member reconciliation"; `CurrentAssignmentBuilder` in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping

from heirlog.broker.groups.consumer.values import (
    NO_PARTITIONS,
    Assignment,
    MemberAssignment,
    MemberState,
    assignment_of,
    common,
    minus,
    overlaps,
    plus,
)
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import Uuid


def reconciled(
    member_id: str,
    current: MemberAssignment,
    *,
    target_epoch: int,
    target: Assignment,
    subscribed: frozenset[Uuid],
    owners: Mapping[Uuid, Mapping[int, str]],
    owned: Assignment | None,
    subscription_changed: bool,
) -> MemberAssignment:
    """What the member has after this heartbeat; the same object if nothing changes.

    subscribed: topics that the member subscribes to. owned: what it says that it has; None if it says nothing. Raises
    FENCED_MEMBER_EPOCH.
    """

    def compute(before: MemberAssignment) -> MemberAssignment:
        return _towards(before, member_id, target_epoch, target, subscribed, owners, owned)

    if current.state is MemberState.STABLE:
        if current.epoch != target_epoch:
            return compute(current)
        return _stripped(current, subscribed, owned) if subscription_changed else current
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if owned is None or overlaps(owned, current.pending):
            return _stripped(current, subscribed, owned) if subscription_changed else current
        return compute(current)
    if current.state is MemberState.UNRELEASED_PARTITIONS:
        return compute(current)
    if owned is None or owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "the member is in a state that this version does not know: it must give up its partitions and join again",
        )
    return compute(MemberAssignment(target_epoch, current.previous_epoch))


def _towards(
    current: MemberAssignment,
    member_id: str,
    target_epoch: int,
    target: Assignment,
    subscribed: frozenset[Uuid],
    owners: Mapping[Uuid, Mapping[int, str]],
    owned: Assignment | None,
) -> MemberAssignment:
    wanted_in_all = assignment_of((topic_id, numbers) for topic_id, numbers in target.items() if topic_id in subscribed)
    keep = common(current.assigned, wanted_in_all)
    revoke = minus(current.assigned, wanted_in_all)
    wanted = minus(wanted_in_all, keep)
    take = assignment_of(
        (topic_id, (n for n in numbers if is_free(owners.get(topic_id, {}).get(n), member_id)))
        for topic_id, numbers in wanted.items()
    )
    is_blocked = take != wanted
    if revoke and (owned is None or overlaps(owned, revoke)):
        return _unless_same(
            current,
            MemberAssignment(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, keep, revoke),
        )
    state = MemberState.UNRELEASED_PARTITIONS if is_blocked else MemberState.STABLE
    return _unless_same(current, MemberAssignment(target_epoch, current.epoch, state, plus(keep, take)))


def is_free(owner: str | None, member_id: str) -> bool:
    """Guard 36: a member takes a partition only if no other member has it, or must still give it up (KIP-848).

    Without it two members read one partition.
    """
    return owner is None or owner == member_id


def _unless_same(before: MemberAssignment, after: MemberAssignment) -> MemberAssignment:
    """No record for a member that only waits."""
    same = (before.epoch, before.state) == (after.epoch, after.state)
    return before if same and before.assigned == after.assigned and before.pending == after.pending else after


def _stripped(current: MemberAssignment, subscribed: frozenset[Uuid], owned: Assignment | None) -> MemberAssignment:
    """Without the topics that the member no longer subscribes to."""
    kept = assignment_of(
        (topic_id, numbers) for topic_id, numbers in current.assigned.items() if topic_id in subscribed
    )
    dropped = minus(current.assigned, kept)
    if not dropped:
        return current
    if owned is None or overlaps(owned, dropped):
        return MemberAssignment(
            current.epoch,
            current.epoch,
            MemberState.UNREVOKED_PARTITIONS,
            kept,
            plus(current.pending, dropped),
        )
    return MemberAssignment(current.epoch, current.epoch, current.state, kept, current.pending or NO_PARTITIONS)
