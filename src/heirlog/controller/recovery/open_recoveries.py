"""What is known of each partition without a leader: what its replicas have said, and what an operator wants.

A page of the book belongs to one partition (by topic id) and one leader epoch: while nobody leads no log can change, so
answers stay good until the epoch goes on. Nothing is written down: a new controller begins with an empty book.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from heirlog.controller.recovery.replica_log_info import ReplicaLogInfo, bounds, counts, recorded
from heirlog.controller.recovery.strategy import Strategy
from heirlog.metadata.basis import ReplicaAnswer
from heirlog.metadata.image import Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import BrokerId, LeaderEpoch, PartitionKey


@dataclass(slots=True)
class OpenRecovery:
    """What is known of one partition in one leader epoch."""

    leader_epoch: LeaderEpoch
    answers: dict[BrokerId, ReplicaLogInfo] = field(default_factory=dict)
    """The last one of each, also those that do not count."""
    began_ms: int | None = None
    """None: nothing recovers; answers are kept, the logs cannot change."""
    strategy: Strategy | None = None
    """The one it began with."""
    requested: Strategy | None = None
    """An operator's, for this election."""
    overrules: Strategy | None = None
    """The configured one when he asked: if that is changed, the configuration is the newer word."""
    skips_wait: bool = False
    surveyed_until_ms: int = -1
    due_ms: int | None = None
    """When its wait ends."""
    awaited: set[BrokerId] = field(default_factory=set)
    """Nothing can be decided before all of these have answered; empty where any answer may decide."""

    def rest(self) -> None:
        """Nothing recovers any more, or not yet; what is known stays."""
        self.began_ms = self.due_ms = None


class OpenRecoveries:
    def __init__(self) -> None:
        self.image = Image()
        """Whose registrations say which answers count."""
        self.recoveries: dict[PartitionKey, OpenRecovery] = {}

    def opened(self, key: PartitionKey, state: PartitionRegistration) -> OpenRecovery:
        """The page of this leader epoch, a new one if need be."""
        self.drop_if_stale(key, state)
        return self.recoveries.setdefault(key, OpenRecovery(state.leader_epoch))

    def drop_if_stale(self, key: PartitionKey, state: PartitionRegistration) -> None:
        recovery = self.recoveries.get(key)
        if recovery is not None and recovery.leader_epoch != state.leader_epoch:
            del self.recoveries[key]

    def answers_that_count(self, key: PartitionKey, state: PartitionRegistration) -> dict[BrokerId, ReplicaLogInfo]:
        """In assignment order."""
        recovery = self.recoveries.get(key)
        if recovery is None or not recovery.answers or recovery.leader_epoch != state.leader_epoch:
            return {}
        found = {}
        for replica in state.replicas:
            answer, broker = recovery.answers.get(replica), self.image.brokers.get(replica)
            if answer is not None and broker is not None and counts(answer, broker.epoch, state.leader_epoch):
                found[replica] = answer
        return found

    def recorded_answers(self, key: PartitionKey, state: PartitionRegistration) -> list[ReplicaAnswer]:
        """What an election that may lose records writes down: also what a replica said in an earlier life.

        That bounds what it can still hold, and it counts as not having answered.
        """
        recovery, counting = self.recoveries.get(key), self.answers_that_count(key, state)
        if recovery is None or recovery.leader_epoch != state.leader_epoch:
            return []
        return [
            recorded(replica, answer, replica in counting)
            for replica, answer in recovery.answers.items()
            if bounds(answer, state.leader_epoch)
        ]
