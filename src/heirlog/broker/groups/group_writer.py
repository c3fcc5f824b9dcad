"""Writes the records of groups and offsets; what they change is applied once they are committed.

A change and its answer wait for the high watermark (`broker/internal_topic_writer.py`). An answer may time out
(`offsets.commit.timeout.ms`); the change still happens, because its record is in the log. Groups of the consumer
protocol have a second state, which changes when a record is in the log (`consumer/protocol.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from heirlog.broker.groups.activity import GroupActivity
from heirlog.broker.groups.consumer.group import ConsumerGroup
from heirlog.broker.groups.consumer.records import ConsumerGroupRecord, GroupEpoch, write_consumer_record
from heirlog.broker.groups.group import ClassicGroup
from heirlog.broker.groups.group_registry import GroupRegistry
from heirlog.broker.groups.offsets import OffsetAndMetadata, TopicPartition
from heirlog.broker.groups.records import KeyValue, group_record, offset_record
from heirlog.broker.internal_topic_writer import AS_COORDINATOR, InternalTopicWriter, nothing
from heirlog.broker.partition import Partition
from heirlog.env import Env
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import TransactionMarker
from heirlog.storage.verification import VerificationGuard

_AS_COORDINATOR: Final = {
    **AS_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""The error that a client of the coordinator gets if its record could not be appended."""


class GroupWriter:
    """Of one partition of `__consumer_offsets`."""

    def __init__(
        self,
        env: Env,
        partition: Partition,
        writer: InternalTopicWriter,
        compression: int,
        registry: GroupRegistry,
        activity: GroupActivity,
        on_upgraded: Callable[[ConsumerGroup], None],
    ) -> None:
        """compression: offsets.topic.compression.codec. on_upgraded: a group that was a classic one has its records."""
        self._env = env
        self._partition = partition
        self._writer = writer
        self._compression = compression
        self._registry = registry
        self._activity = activity
        self._on_upgraded = on_upgraded

    def append(
        self,
        records: Sequence[KeyValue],
        apply: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        appended: Callable[[], None] = nothing,
    ) -> None:
        """Write one batch. `apply` runs once it is committed; `answer` then, or earlier with an error or a timeout."""
        wall_ms = self._env.wall_ms()
        batch = encode_batch([(key, value, (), wall_ms) for key, value in records], compression=self._compression)
        self._writer.append(batch, apply, lambda code: answer(_as_coordinator(code)), appended=appended)

    def after_writes(self, answer: Callable[[ErrorCode], None]) -> None:
        """Answer once everything that is written by now is committed."""
        self._writer.after_writes(lambda code: answer(_as_coordinator(code)))

    # -- groups -------------------------------------------------------------------------------------------------

    def store_classic(
        self, group: ClassicGroup, assignments: dict[str, bytes], done: Callable[[ErrorCode], None]
    ) -> None:
        group.records_written += 1
        record = group_record(group.group_id, group.as_record(assignments))
        self.append([record], nothing, lambda code: done(_of_group(code)))

    def write_consumer(
        self,
        group: ConsumerGroup,
        records: Sequence[ConsumerGroupRecord],
        applied: Callable[[], None],
        answer: Callable[[ErrorCode], None],
        behind: Sequence[KeyValue] = (),
    ) -> None:
        """Write records of a group, which change its state at once and what is committed of it later.

        applied: runs when they are in the log and in the group's state. behind: records of another kind, after them.
        """
        before: list[KeyValue] = []
        records = [*group.unwritten, *records]
        replaced = self._registry.groups.get(group.group_id)
        if isinstance(replaced, ClassicGroup) and not replaced.has_no_record:
            before = [*before, group_record(group.group_id, None)]

        def appended() -> None:
            bytes_before = 0 if group.unwritten else group.state.members_bytes
            group.state.apply(records)
            self._registry.memory_use.bytes += group.state.members_bytes - bytes_before
            self._take_place(group)
            group.writes_in_flight += 1
            self._activity.consumer_rebalances += sum(
                isinstance(record, GroupEpoch) and record.epoch is not None for record in records
            )
            applied()

        def committed() -> None:
            group.writes_in_flight -= 1
            group.committed.apply(records)
            self._registry.forget_if_gone(group)

        written = [*before, *map(write_consumer_record, records), *behind]
        self.append(written, committed, lambda code: answer(_of_group(code)), appended)

    def _take_place(self, group: ConsumerGroup) -> None:
        """The first records of a group are in the log: it replaces a classic one."""
        if self._registry.groups.get(group.group_id) is group:
            return
        self._registry.replace(group)
        if group.unwritten:
            group.unwritten = []
            self._on_upgraded(group)

    # -- offsets ------------------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        offsets: dict[TopicPartition, OffsetAndMetadata | None],
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Commit offsets in one batch; None deletes an offset."""

        def apply() -> None:
            for partition, committed in offsets.items():
                self._registry.set_offset(group_id, partition, committed)
                self._activity.offset_commits += committed is not None

        self.append([offset_record(group_id, p, committed) for p, committed in offsets.items()], apply, answer)

    def commit_transactional(
        self,
        group_id: str,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        producer: tuple[int, int],
        guard: VerificationGuard | None,
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write offsets in a producer's transaction; they count once its marker commits them.

        producer: its id and epoch. guard: what allows it to begin a transaction in this partition.
        """
        wall_ms = self._env.wall_ms()
        records = [offset_record(group_id, partition, committed) for partition, committed in offsets.items()]
        batch = encode_batch(
            [(key, value, (), wall_ms) for key, value in records],
            compression=self._compression,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=0,
            transactional=True,
        )

        def apply() -> None:
            for partition, committed in offsets.items():
                self._registry.transactional.written(producer[0], group_id, partition, committed)
            self._activity.offset_commits += len(offsets)

        self._writer.append(batch, apply, lambda code: answer(_as_coordinator(code)), guard)

    def end_transaction(
        self,
        marker: TransactionMarker,
        producer: tuple[int, int],
        transaction_version: int,
        answer: Callable[[ErrorCode], None],
    ) -> None:
        """Write a transaction marker, and take over what it commits. `answer` gets the error of the log."""

        def apply() -> None:
            self._registry.transaction_ended(producer[0], commit=marker.commit)

        self._writer.append_marker(marker, producer, transaction_version, apply, answer)

    def verification_guard(self, producer: tuple[int, int], *, raises_epoch: bool) -> VerificationGuard | None:
        """The guard of a transaction that would begin in this partition; None if it is open. Raises KafkaError."""
        producers = self._partition.log.producers
        if not producers.needs_verification(*producer):
            return None
        wall_ms = self._env.wall_ms()
        return producers.guards.guard(*producer, 0, raises_epoch=raises_epoch, wall_ms=wall_ms)


def _as_coordinator(code: ErrorCode) -> ErrorCode:
    return _AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _of_group(code: ErrorCode) -> ErrorCode:
    """A group that does not fit into a batch has no error of its own."""
    return ErrorCode.UNKNOWN_SERVER_ERROR if code is ErrorCode.INVALID_COMMIT_OFFSET_SIZE else code
