"""What a rule depends on, as it was when the rule was judged last: an event that changed none of it breaks no rule.

    SeenReplica       a replica on a broker: T1, T3 - T5, T8a, T12, R2
    SeenController    a controller and its metadata log: Q1, Q3 - Q7, Q9, Q11 - Q14

Both are compared after each event, and are nearly always equal. Rules that depend on time (L2) or on what others have
committed (Q10) are judged each time.
"""

from __future__ import annotations

from typing import NamedTuple

from heirlog.broker.isr import Isr
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.node.node import Node
from heirlog.raft.control import Voter
from heirlog.raft.epoch_state import EpochState
from heirlog.raft.metadata_log import MetadataLog
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
        return cls(
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
        )

    def is_still(self, partition: Partition) -> bool:
        """Whether `of` would give the same: another process has other partitions. An equal copy of the ISR counts as
        another one.
        """
        log = partition.log
        return (
            self.high_watermark == partition.high_watermark
            and self.end == log.log_end_offset
            and self.partition is partition
            and self.isr is partition.isr
            and self.leader_epoch == partition.leader_epoch
            and self.partition_epoch == partition.partition_epoch
            and self.role is partition.role
            and self.start == log.log_start_offset
            and self.last_epoch == log.epochs.latest
        )


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
        log = quorum.log
        return cls(
            log,
            -1 if log is None else log.end_offset,
            -1 if log is None else log.start_offset,
            -1 if log is None else log.log.epochs.latest,
            () if log is None else tuple(log.snapshots),
            () if log is None else log.voters,
            -1 if log is None else log.voters_offset,
            quorum.high_watermark,
            quorum.applied_offset,
            quorum.state,
            quorum.durable_state,
            controller.is_active,
            controller.epoch,
        )
