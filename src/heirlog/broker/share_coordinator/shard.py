"""The share partitions of one partition of `__share_group_state`, while this broker leads it.

    loading ----> loaded ----> closed: the leader epoch is over, the disk failed, the broker stops
       \\__ a record cannot be read __> closed to clients: COORDINATOR_NOT_AVAILABLE

A change is visible as soon as its record is in the log of this broker, so requests that follow each other build on each
other; no answer, error or not, leaves before everything that is written by then is committed. So a leader of a
partition never loads or loses a state that a later coordinator contradicts. If the coordinator loses its partition, the
state is dropped with what was not committed, and the waiting leaders get NOT_COORDINATOR.

*Pruning.* Of each share partition only the newest snapshot and what follows it is needed. Every five
minutes the log start moves to the oldest of the newest committed snapshots. A share partition to which
nothing is written would keep the log for ever: after five minutes it gets one more snapshot, and no second one before
its next update.

A share partition whose topic is deleted gets a tombstone.

Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.internal_topic_writer import AS_COORDINATOR, InternalTopicWriter, nothing
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.share_coordinator.activity import ShareStateActivity
from heirlog.broker.share_coordinator.records import read_record, write_record
from heirlog.broker.share_coordinator.state import (
    SharePartitionKey,
    ShareRecord,
    ShareState,
    ShareUpdate,
    StateWrite,
    applied,
    check_leader,
    initialized,
    is_cold,
    next_snapshot,
    read_by,
    written,
)
from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.protocol.batch import BatchHeader, Record, encode_batch
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.types import Uuid

RECORDS_PER_BATCH = 100
"""Limit of one batch of snapshots or tombstones that the coordinator writes by itself."""
PRUNE_INTERVAL_MS = 5 * 60_000
"""Time between two looks for records that are not needed any more, as on Apache Kafka."""
COLD_INTERVAL_MS = 5 * 60_000
"""A share partition to which nothing was written for so long gets a snapshot, as on Apache Kafka."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    write_timeout_ms: int
    """share.coordinator.write.timeout.ms"""
    updates_per_snapshot: int
    """share.coordinator.snapshot.update.records.per.snapshot"""
    compression: int
    """share.coordinator.state.topic.compression.codec"""


class ShareCoordinatorShard:
    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        config: ShareCoordinatorConfig,
        image: Callable[[], Image],
        activity: ShareStateActivity,
    ) -> None:
        self.loaded = False
        self.is_unreadable = False
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.snapshots: dict[SharePartitionKey, int] = {}
        """Offset of the newest committed snapshot of each share partition."""
        self._activity = activity
        self._env = env
        self._created_ms = env.now_ms()
        self._replicas = replicas
        self._partition = partition
        self._config = config
        self._image = image
        self._loader = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._writer = InternalTopicWriter(
            env, replicas, partition, timeout_ms=config.write_timeout_ms, on_closed=self._drop
        )
        self._timers: dict[str, Cancel] = {}

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the epoch for which this shard was created."""
        return self._writer.leads

    # -- loading ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Start loading; `loaded` is False until that is done."""
        self._loader.read()

    def _take_over(self, header: BatchHeader, record: Record) -> None:
        try:
            stored = read_record(record.key, record.value)
        except Malformed as error:
            self._unreadable(record.offset, error)
            return
        if stored is not None:
            self._apply(stored)
            self._committed(stored, record.offset)

    def _unreadable(self, offset: int, error: Exception) -> None:
        """Serve none of these share partitions: a state that goes back would deliver finished records again."""
        self.is_unreadable = True
        self._env.log(
            "error",
            "share-state-record-unreadable",
            partition=self._partition.index,
            offset=offset,
            error=str(error),
            consequence="no share group of this partition is served; restore the partition from another replica",
        )

    def _loading_is_done(self) -> None:
        if self.is_unreadable:
            return
        self.loaded = True
        now_ms = self._env.now_ms()
        self._activity.load_times.add(now_ms, now_ms - self._created_ms)
        self._forget_missing_topics()
        self._every("prune", PRUNE_INTERVAL_MS, self.prune)
        self._every("cold", COLD_INTERVAL_MS, self.snapshot_cold)
        self._env.log(
            "info",
            "share-states-loaded",
            partition=self._partition.index,
            leader_epoch=self._writer.leader_epoch,
            share_partitions=len(self.states),
        )

    def _apply(self, record: ShareRecord) -> None:
        state = applied(self.states.get(record.key), record)
        if state is None:
            self.states.pop(record.key, None)
        else:
            self.states[record.key] = state

    def _committed(self, record: ShareRecord, offset: int) -> None:
        """Without the wait for the commit, pruning could delete the one snapshot that the next coordinator has."""
        if record.value is None:
            self.snapshots.pop(record.key, None)
        elif isinstance(record.value, ShareState):
            self.snapshots[record.key] = offset

    # -- requests -----------------------------------------------------------------------------------------------

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        answer: Callable[[ErrorCode, str | None], None],
    ) -> None:
        def change() -> tuple[None, Sequence[ShareRecord]]:
            before = self.states.get(key)
            after = initialized(before, state_epoch, start_offset, self._env.wall_ms())
            self._check_topic(key)
            return None, [] if after is before else [ShareRecord(key, after)]

        self._answer(change, lambda _, code, why: answer(code, why))

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        answer: Callable[[ShareState | None, ErrorCode, str | None], None],
    ) -> None:
        """The state, for the leader of the partition; an older leader is fenced from now on."""

        def read() -> tuple[ShareState, Sequence[ShareRecord]]:
            state = check_leader(self.states.get(key), leader_epoch)
            self._check_topic(key)
            update = read_by(state, leader_epoch)
            return state, [] if update is None else [ShareRecord(key, update)]

        self._answer(read, answer)

    def write(self, key: SharePartitionKey, write: StateWrite, answer: Callable[[ErrorCode, str | None], None]) -> None:
        def change() -> ShareState | ShareUpdate:
            after = written(self.states.get(key), write, self._config.updates_per_snapshot, self._env.wall_ms())
            self._check_topic(key)
            return after

        self._answer(lambda: self._change(key, change()), lambda _, code, why: answer(code, why))

    def read_summary(
        self, key: SharePartitionKey, answer: Callable[[ShareState | None, ErrorCode, str | None], None]
    ) -> None:
        """The state, None if there is none."""

        def read() -> tuple[ShareState | None, Sequence[ShareRecord]]:
            self._check_topic(key)
            return self.states.get(key), []

        self._answer(read, answer)

    def delete(self, key: SharePartitionKey, answer: Callable[[ErrorCode, str | None], None]) -> None:
        """Deleting a state that does not exist succeeds."""

        def change() -> tuple[None, Sequence[ShareRecord]]:
            return None, [ShareRecord(key, None)] if key in self.states else []

        self._answer(change, lambda _, code, why: answer(code, why))

    def _change(self, key: SharePartitionKey, value: ShareState | ShareUpdate) -> tuple[None, Sequence[ShareRecord]]:
        return None, [ShareRecord(key, value)]

    def _check_topic(self, key: SharePartitionKey) -> None:
        """Raises KafkaError if the partition does not exist (any more)."""
        if self._image().partition(key.topic_id, key.partition) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")

    def _answer(
        self,
        request: Callable[[], tuple[T, Sequence[ShareRecord]]],
        answer: Callable[[T | None, ErrorCode, str | None], None],
    ) -> None:
        """Carry out a request, and answer it once everything that it knows of is committed."""
        result: T | None = None
        refused, why = ErrorCode.NONE, None
        records: Sequence[ShareRecord] = ()
        try:
            result, records = request()
        except KafkaError as error:
            refused, why = error.code, str(error)

        def committed(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                answer(None, AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR), None)
            else:
                answer(result, refused, why)

        if records:
            self._append(records, committed)
        else:
            self._writer.after_writes(committed)

    def _append(self, records: Sequence[ShareRecord], answer: Callable[[ErrorCode], None]) -> None:
        wall_ms = self._env.wall_ms()
        batch = encode_batch(
            [(*write_record(record), (), wall_ms) for record in records], compression=self._config.compression
        )
        begin = self._partition.log.log_end_offset
        began_ms = self._env.now_ms()

        def appended() -> None:
            for record in records:
                self._apply(record)

        def committed() -> None:
            for offset, record in enumerate(records, begin):
                self._committed(record, offset)
            now_ms = self._env.now_ms()
            self._activity.writes += 1
            self._activity.write_times.add(now_ms, now_ms - began_ms)

        self._writer.append(batch, committed, answer, appended=appended)

    # -- what the coordinator does by itself --------------------------------------------------------------------

    def _every(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        def due() -> None:
            if self.leads:
                work()
                self._timers[name] = self._env.call_later(interval_ms, due)

        self._timers[name] = self._env.call_later(interval_ms, due)

    def prune(self) -> None:
        """Delete the records that no share partition needs."""
        # those that could not be deleted when their topics were, below min ISR
        self._forget_missing_topics()
        partition = self._partition
        needed = min([*self.snapshots.values(), partition.high_watermark])
        if needed <= partition.log.log_start_offset:
            return
        try:
            partition.log.increment_log_start(needed)
        except OSError as error:
            self._replicas.storage_failed(partition, error)

    def snapshot_cold(self) -> None:
        """Share partitions without a recent write get one snapshot, so that pruning can pass their last one."""
        wall_ms = self._env.wall_ms()
        self._write_all(
            [
                ShareRecord(key, next_snapshot(state, wall_ms))
                for key, state in self.states.items()
                if wall_ms - state.write_ms >= COLD_INTERVAL_MS and not is_cold(state)
            ]
        )

    def forget_topics(self, topic_ids: Collection[Uuid]) -> None:
        """Delete the states of deleted topics."""
        if self.loaded and topic_ids:
            self._write_all([ShareRecord(key, None) for key in self.states if key.topic_id in topic_ids])

    def _forget_missing_topics(self) -> None:
        topics = self._image().topics
        self.forget_topics({key.topic_id for key in self.states if key.topic_id not in topics})

    def _write_all(self, records: Sequence[ShareRecord]) -> None:
        for start in range(0, len(records), RECORDS_PER_BATCH):
            self._append(records[start : start + RECORDS_PER_BATCH], nothing)

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """This broker is not the coordinator any more: drop everything, and answer the waiting requests."""
        self._writer.close()

    def _drop(self) -> None:
        self._loader.stop()
        for cancel in self._timers.values():
            cancel()
        self.states, self.snapshots = {}, {}
