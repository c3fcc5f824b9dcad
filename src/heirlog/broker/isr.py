"""The in-sync replicas as a leader holds them: what the controller confirmed, and what the leader asked for.

    Committed ----expand----> PendingExpandIsr    maximal = committed + the new member
        ^  \\-----shrink-----> PendingShrinkIsr    maximal = committed
        |                          |
        +---answer, or newer metadata

The *committed* ISR is the one that the controller wrote. It is compared with the min ISR before an acks=all append and
before the high watermark moves, because only its members can be elected. The *maximal* ISR also has every member that
the controller may have confirmed before this leader received the answer. The high watermark waits for all of them, and
an acks=all request whose wait ends is answered by comparing it with the min ISR (`Partition.outcome_of`, as in Kafka).
At most one change is in flight.

Expand: a follower joins when it has reached the high watermark and the start of this leader epoch, and its broker is
the registered incarnation, unfenced and not shutting down. While the committed ISR is below the effective min ISR, the
high watermark does not move, so reaching it proves nothing. Then the follower must also be caught up; otherwise a slow
follower would join, be removed and join again (KAFKA-19996; a choice of docs/internals/design.md).
Shrink: members that are not at the leader's end and were last caught up longer ago than `replica.lag.time.max.ms`.

Source: KIP-497 (AlterPartition), KIP-903 (epochs), kafka-behaviour 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from heirlog.broker.followers import Follower, RegisteredBrokers
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionEpoch, Uuid

Members: TypeAlias = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """No change is in flight."""

    committed: Members

    @property
    def maximal(self) -> Members:
        return self.committed


@dataclass(frozen=True, slots=True)
class PendingExpandIsr:
    """The controller is asked to add `added`."""

    committed: Members
    added: BrokerId
    maximal: Members = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "maximal", (*self.committed, self.added))

    @property
    def proposed(self) -> Members:
        return self.maximal


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr:
    """The controller is asked to remove `removed`; until it has, they still count."""

    committed: Members
    removed: Members

    @property
    def maximal(self) -> Members:
        return self.committed

    @property
    def proposed(self) -> Members:
        return tuple(member for member in self.committed if member not in self.removed)


Isr: TypeAlias = CommittedPartitionState | PendingExpandIsr | PendingShrinkIsr


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """One partition of an AlterPartition request. Compared by identity: an answer belongs to one proposal."""

    topic_id: Uuid
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr_with_epochs: tuple[tuple[BrokerId, int], ...]
    """Each member with the broker epoch of its last fetch, -1 if it has not fetched in this leader epoch."""


def has_reached(follower: Follower, high_watermark: int, epoch_start_offset: int) -> bool:
    """Guard 4: a follower may join at or above the high watermark and the start of this leader epoch.

    Without it a replica can be elected that lacks committed records. The offset is from a fetch in this epoch: a new
    epoch forgets earlier ones.
    """
    return follower.log_end_offset >= high_watermark and follower.log_end_offset >= epoch_start_offset


def may_expand(
    follower: Follower,
    *,
    isr: Isr,
    min_isr: int,
    registered_brokers: RegisteredBrokers,
    high_watermark: int,
    epoch_start_offset: int,
    leader_end_offset: int,
    lag_limit_ms: int,
) -> bool:
    """Whether to ask the controller to add `follower`; called right after its fetch."""
    if not isinstance(isr, CommittedPartitionState) or follower.broker_id in isr.committed:
        return False
    if not has_reached(follower, high_watermark, epoch_start_offset):
        return False
    if len(isr.committed) < min_isr and not follower.is_caught_up(leader_end_offset, lag_limit_ms):
        return False
    return registered_brokers.may_join_isr(follower)


def out_of_sync(isr: Isr, followers: Mapping[BrokerId, Follower], leader_end_offset: int, lag_limit_ms: int) -> Members:
    """The members that the controller should be asked to remove; none while a change is in flight."""
    if not isinstance(isr, CommittedPartitionState):
        return ()
    return tuple(
        member
        for member in isr.committed
        if member in followers and not followers[member].is_caught_up(leader_end_offset, lag_limit_ms)
    )


def with_epochs(
    members: Iterable[BrokerId], followers: Mapping[BrokerId, Follower], registered_brokers: RegisteredBrokers
) -> tuple[tuple[BrokerId, int], ...]:
    def epoch_of(member: BrokerId) -> int:
        if member == registered_brokers.broker_id:
            return registered_brokers.broker_epoch
        epoch = followers[member].broker_epoch
        return -1 if epoch is None else epoch

    return tuple((member, epoch_of(member)) for member in members)
