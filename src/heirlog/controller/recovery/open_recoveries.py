"""What is known about each partition without a leader: the replicas' answers, and an operator's request.

An entry belongs to one partition (by topic id) and one leader epoch. Without a leader no log can change, so answers
stay valid until the epoch changes. Nothing is stored: a new controller starts with no entries.
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
    """What is known about one partition in one leader epoch."""

    leader_epoch: LeaderEpoch
    answers: dict[BrokerId, ReplicaLogInfo] = field(default_factory=dict)
    """The last answer of each replica, even if it does not count."""
    began_ms: int | None = None
    """None: no recovery runs. The answers are kept, because the logs cannot change."""
    strategy: Strategy | None = None
    """The strategy with which the recovery began."""
    requested: Strategy | None = None
    """The strategy that an operator requested for this election."""
    replaced_strategy: Strategy | None = None
    """The configured strategy at the time of that request. Once the configuration changes, it is newer and wins."""
    skips_wait: bool = False
    surveyed_until_ms: int = -1
    due_ms: int | None = None
    """When the wait ends."""
    awaited: set[BrokerId] = field(default_factory=set)
    """Replicas that must all answer before a decision is possible; empty if any answer may decide."""

    def stop(self) -> None:
        """Stop the recovery; the answers and the operator's request stay."""
        self.began_ms = self.due_ms = None


class OpenRecoveries:
    def __init__(self) -> None:
        self.image = Image()
        """The image whose registrations decide which answers count."""
        self.recoveries: dict[PartitionKey, OpenRecovery] = {}

    def opened(self, key: PartitionKey, state: PartitionRegistration) -> OpenRecovery:
        """The entry of this leader epoch; a new one if there is none."""
        self.drop_if_stale(key, state)
        return self.recoveries.setdefault(key, OpenRecovery(state.leader_epoch))

    def drop_if_stale(self, key: PartitionKey, state: PartitionRegistration) -> None:
        recovery = self.recoveries.get(key)
        if recovery is not None and recovery.leader_epoch != state.leader_epoch:
            del self.recoveries[key]

    def answers_that_count(self, key: PartitionKey, state: PartitionRegistration) -> dict[BrokerId, ReplicaLogInfo]:
        """The answers that count, in assignment order."""
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
        """The answers that an election which may lose records stores, including those from before a broker's restart.

        Such an old answer limits what the replica can still hold, but the replica counts as not having answered.
        """
        recovery, counting = self.recoveries.get(key), self.answers_that_count(key, state)
        if recovery is None or recovery.leader_epoch != state.leader_epoch:
            return []
        return [
            recorded(replica, answer, replica in counting)
            for replica, answer in recovery.answers.items()
            if bounds(answer, state.leader_epoch)
        ]
