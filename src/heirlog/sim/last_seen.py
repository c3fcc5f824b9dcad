"""What a rule depends on, as it was when the rule was judged last: an event that changed none of it breaks no rule.

    SeenReplica           a replica on a broker: T1, T3 - T5, T8a, T12, R2; `SeenBroker` has all of a broker
    SeenController        a controller and its metadata log: Q1, Q3 - Q7, Q9, Q11 - Q14
    SeenLoneController    the same of the only one: what it has committed, since those rules are about several

All are compared after each event, and are nearly always equal. Rules that depend on time (L2) or on what others have
committed (Q10) are judged each time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from heirlog.broker.isr import Isr
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.node.node import Node
from heirlog.protocol.types import PartitionKey
from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.quorum import Quorum
from heirlog.raft.quorum_state import QuorumState
from heirlog.raft.snapshot import SnapshotId
from heirlog.sim.world import Process


class SeenReplica(NamedTuple):
    process: Process | None
    partition: Partition
    role: ReplicaRole
    leader_epoch: int
    partition_epoch: int
    isr: Isr
    high_watermark: int
    end: int
    start: int
    last_epoch: int
    """Of the record below `end`, or a later one that its leader has begun."""

    @classmethod
    def of(cls, process: Process | None, partition: Partition) -> SeenReplica:
        log = partition.log
        # as cls(...) does, without the call in between
        return tuple.__new__(
            cls,
            (
                process,
                partition,
                partition.role,
                partition.leader_epoch,
                partition.partition_epoch,
                partition.isr,
                partition.high_watermark,
                log.log_end_offset,
                log.log_start_offset,
                log.epochs.latest,
            ),
        )


_ISR = SeenReplica._fields.index("isr")
"""From there on a `SeenReplica` has what `SeenBroker` compares."""
_UNSEEN = -1
"""No high watermark."""


class SeenBroker:
    """A broker, of one process after the other: its replicas, and what it has applied."""

    def __init__(self) -> None:
        self.node: Node | None = None
        self.applied_offset = -1
        """Up to where it had applied the metadata."""
        self.committed_end = 0
        """Where what was committed ended then."""
        self._seen: dict[PartitionKey, SeenReplica] = {}
        self._partitions: list[Partition] = []
        self._rows: list[list[Any]] = []
        """For each of them what can change, as a plain list, which is unpacked quickly: with the role, the leader epoch
        or the partition epoch the ISR changes, too (`Partition`).
        """

    def changed(
        self, process: Process | None, partitions: list[Partition], *, everything: bool
    ) -> list[tuple[SeenReplica | None, SeenReplica]]:
        """Replicas that are not as they were at the last call, as they were then and as they are now.

        partitions: of a process, in a list that is another one as soon as it has other partitions. An equal copy of an
        ISR counts as another ISR. everything: all of them.
        """
        if everything or partitions is not self._partitions:
            self._partitions = partitions
            self._rows = [self._row(partition, everything) for partition in partitions]
        found = []
        for row in self._rows:
            partition, isr, watermark, end, start, last_epoch = row
            log = partition.log
            if (
                watermark != partition.high_watermark
                or end != log.log_end_offset
                or isr is not partition.isr
                or start != log.log_start_offset
                or last_epoch != log.epochs.latest
            ):
                before, now = self._seen.get(partition.key), SeenReplica.of(process, partition)
                self._seen[partition.key] = now
                row[1:] = now[_ISR:]
                found.append((before, now))
        return found

    def _row(self, partition: Partition, everything: bool) -> list[Any]:
        before = self._seen.get(partition.key)
        if everything or before is None or before.partition is not partition:
            return [partition, None, _UNSEEN, -1, -1, -1]
        return [partition, before.isr, before.high_watermark, before.end, before.start, before.last_epoch]


class SeenController(NamedTuple):
    log: MetadataLog | None
    end: int
    start: int
    last_epoch: int
    """Of the record below `end`."""
    snapshots: tuple[SnapshotId, ...]
    voters: tuple[Voter, ...]
    voters_offset: int
    high_watermark: int
    applied_offset: int
    state: EpochState | None
    durable_state: QuorumState | None
    is_active: bool
    active_epoch: int

    @classmethod
    def of(cls, node: Node) -> SeenController:
        quorum, controller = node.quorum, node.controller
        metadata_log = quorum.log
        of_quorum = (
            quorum.high_watermark,
            quorum.applied_offset,
            quorum.state,
            quorum.durable_state,
            controller.is_active,
            controller.epoch,
        )
        if metadata_log is None:
            return cls(None, -1, -1, -1, (), (), -1, *of_quorum)
        log = metadata_log.log
        # as cls(...) does, without the call in between: this is asked after each event of a controller
        return tuple.__new__(
            cls,
            (
                metadata_log,
                log.log_end_offset,
                log.log_start_offset,
                log.epochs.latest,
                tuple(metadata_log.store.ids),
                metadata_log.voters,
                metadata_log.voters_offset,
                *of_quorum,
            ),
        )


class SeenLoneController(NamedTuple):
    log: MetadataLog | None
    high_watermark: int

    @classmethod
    def of(cls, quorum: Quorum) -> SeenLoneController:
        return tuple.__new__(cls, (quorum.log, quorum.high_watermark))  # as above
