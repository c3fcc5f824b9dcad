"""The transactional ids of one partition of `__transaction_state`, while this broker leads it.

    loading ----> loaded ----> closed: the leader epoch is over, the disk failed, the broker stops
       \\__ a record cannot be read __> closed to clients: COORDINATOR_NOT_AVAILABLE

A request leads to a change (`initialize.py`, `add_partitions.py`, `end.py`). The change is written, and takes effect
once it is below the high watermark (`broker/internal_topic_writer.py`). From then on a decided transaction is *pending*
until all its markers are written and its completion is committed, too. While anything is pending, the id accepts no
other change. If an answer times out the change stays pending: its record is in the log and may still be committed.
(Apache Kafka 4.2 forgets it, and may then decide a second time.)

The next coordinator loads the same states, and continues: it sends the markers of all decided transactions again. So
nothing but the log is needed to finish a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from heirlog.broker.groups.offsets import TopicPartition
from heirlog.broker.internal_topic_loader import InternalTopicLoader
from heirlog.broker.internal_topic_writer import AS_COORDINATOR, InternalTopicWriter
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.transactions.add_partitions import add_partitions, verify_partitions
from heirlog.broker.transactions.end import complete, end, end_with_new_epoch, fence
from heirlog.broker.transactions.entry import TransactionEntry, is_in_doubt
from heirlog.broker.transactions.expiry import has_expired, in_batches, is_overdue, tombstones
from heirlog.broker.transactions.initialize import FenceFirst, FreshProducerId, initialize
from heirlog.broker.transactions.marker_sender import MarkerJob, MarkerSender
from heirlog.broker.transactions.records import can_be_ended, read_record, transaction_key, transaction_value
from heirlog.broker.transactions.state import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Outcome,
    ProducerIdAndEpoch,
    Transaction,
    TransactionChange,
    TransactionState,
)
from heirlog.env import Cancel, Env
from heirlog.protocol.batch import BatchHeader, Record, encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.primitives import Malformed
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION
from heirlog.raft.latency_window import LatencyWindow

COMPLETION_BACKOFF_MS = 1_000
"""Pause after which a completion that could not be written is tried again."""
RECORD_AGAIN_MS = 1_000
"""Pause until doubts that are not recorded yet are tried again: the ISR may be too small at first."""
LOGGED_MAX = 20
"""Ids in a line of the log."""
NO_PRODUCER = ProducerIdAndEpoch()

Answer: TypeAlias = Callable[[ErrorCode, ProducerIdAndEpoch], None]


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    append_timeout_ms: int
    """request.timeout.ms: how long an answer waits for the commit of its record."""
    abort_interval_ms: int
    """transaction.abort.timed.out.transaction.cleanup.interval.ms"""
    expiration_ms: int
    """transactional.id.expiration.ms"""
    expiration_interval_ms: int
    """transaction.remove.expired.transaction.cleanup.interval.ms"""


def accepts_changes(is_pending: bool) -> bool:
    """Guard 23: while a change of a transactional id is pending, or a decided transaction is, it accepts no other one.

    Without it an outcome is decided a second time, and the other way.
    """
    return not is_pending


class TransactionShard:
    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        config: TransactionConfig,
        markers: MarkerSender,
        *,
        fresh_producer_id: FreshProducerId,
        transaction_version: Callable[[], int],
        load_times: LatencyWindow,
    ) -> None:
        """transaction_version: the finalised level of the feature, at every call. load_times: where to add how long
        loading took."""
        self.loaded = False
        self.waiting_completions = 0
        """Completions that could not be written and will be tried again."""
        self.is_unreadable = False
        self._entries: dict[str, TransactionEntry] = {}
        self._env = env
        self._config = config
        self._markers = markers
        self._partition = partition
        self._doubtful_epoch = partition.doubts.epoch
        """It changes with the leader epoch only; the judgement of elections would take longer than reading a record."""
        self._fresh_producer_id = fresh_producer_id
        self._transaction_version = transaction_version
        self._load_times = load_times
        self._created_ms = env.now_ms()
        self._loader = InternalTopicLoader(
            env,
            replicas,
            partition,
            on_record=self._take_over,
            on_unreadable=self._unreadable,
            on_done=self._loading_is_done,
        )
        self._writer = InternalTopicWriter(
            env, replicas, partition, timeout_ms=config.append_timeout_ms, on_closed=self._drop
        )
        self._timers: dict[str, Cancel] = {}

    @property
    def leads(self) -> bool:
        """Whether this broker still leads the partition in the epoch for which this shard was created."""
        return self._writer.leads

    # loading

    def load(self) -> None:
        """Start loading; `loaded` is False until that is done."""
        self._loader.read()

    def _take_over(self, header: BatchHeader, record: Record) -> None:
        if self.is_unreadable:
            return
        try:
            stored = read_record(record.key, record.value)
        except Malformed as error:
            self._unreadable(record.offset, error)
            return
        if stored is None:
            return
        if stored.transaction is None:
            self._entries.pop(stored.transactional_id, None)
        else:
            transaction, in_doubt = stored.transaction, is_in_doubt(header.leader_epoch, self._doubtful_epoch)
            if in_doubt:
                # its successor may have begun, and later epochs of it may be forgotten
                transaction = replace(transaction, next_producer_id=NO_PRODUCER_ID)
            entry = self._entries[stored.transactional_id] = TransactionEntry(transaction)
            entry.is_in_doubt = in_doubt and not transaction.is_used_up

    def _unreadable(self, offset: int, error: Exception) -> None:
        """Serve none of these ids: a state that goes back could decide a transaction a second time."""
        self.is_unreadable = True
        self._env.log(
            "error",
            "transaction-record-unreadable",
            partition=self._partition.index,
            offset=offset,
            error=str(error),
            consequence="no transactional id of this partition is served; restore the partition from another replica",
        )

    def _loading_is_done(self) -> None:
        if self.is_unreadable:
            return
        self.loaded = True
        now_ms = self._env.now_ms()
        self._load_times.add(now_ms, now_ms - self._created_ms)
        for entry in list(self._entries.values()):
            entry.open_since_ms = now_ms
            if entry.transaction.state.is_prepared:
                self._write_markers(entry)
        self._log_doubts()
        if not self._partition.doubts.is_recorded:
            self._record_doubts()
        self._every("abort", self._config.abort_interval_ms, self._abort_overdue)
        self._every("expire", self._config.expiration_interval_ms, self._delete_expired)
        self._env.log(
            "info",
            "transactions-loaded",
            partition=self._partition.index,
            leader_epoch=self._writer.leader_epoch,
            transactional_ids=len(self._entries),
        )

    def _log_doubts(self) -> None:
        in_doubt = sorted(name for name, entry in self._entries.items() if entry.is_in_doubt)
        if in_doubt:
            self._env.log(
                "warning",
                "transactional-ids-in-doubt",
                partition=self._partition.index,
                doubtful_epoch=self._doubtful_epoch,
                transactional_ids=len(in_doubt),
                first=in_doubt[:LOGGED_MAX],
                consequence="an election or a power cut may have taken their newest states: their producers are fenced "
                "and have to be restarted, and transactions that are open are aborted",
            )

    def _record_doubts(self) -> None:
        """Only this process knows of the doubts: the next coordinator has to find them in its log."""
        left = [entry for entry in self._entries.values() if entry.is_in_doubt and not entry.transaction.is_used_up]
        if not left:
            self._partition.doubts.are_recorded()
            return
        if not self._partition.is_under_min_isr:
            for entry in left:
                self._record_doubt(entry)
        self._timers["doubts"] = self._env.call_later(RECORD_AGAIN_MS, self._record_doubts_if_leading)

    def _record_doubts_if_leading(self) -> None:
        if self.leads:
            self._record_doubts()

    def _record_doubt(self, entry: TransactionEntry) -> None:
        if entry.is_pending:
            return
        if entry.transaction.state.may_expire:
            used_up = replace(entry.transaction, producer_epoch=LAST_PRODUCER_EPOCH)
            self._write(entry, TransactionChange(used_up, NO_PRODUCER), _no_client)
        else:
            self._fence(entry, _no_client)

    # requests

    def get(self, transactional_id: str) -> Transaction | None:
        """The state of an id, as far as it is committed; partitions that have their marker are left out."""
        entry = self._entries.get(transactional_id)
        if entry is None or entry.transaction.producer_epoch == NO_PRODUCER_EPOCH:
            return None
        return (
            entry.transaction if entry.job is None else replace(entry.transaction, partitions=frozenset(entry.job.left))
        )

    def all(self) -> Iterable[Transaction]:
        """The states of all ids."""
        return [entry.transaction for entry in self._entries.values() if entry.transaction.producer_epoch >= 0]

    def init_producer_id(
        self, transactional_id: str, given: ProducerIdAndEpoch | None, timeout_ms: int, answer: Answer
    ) -> None:
        entry = self._entries.get(transactional_id)
        if entry is None:
            fresh = self._fresh_producer_id()
            if fresh is None:
                answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NO_PRODUCER)
                return
            entry = self._entries[transactional_id] = TransactionEntry(
                Transaction(transactional_id=transactional_id, producer_id=fresh, timeout_ms=timeout_ms)
            )
        if not accepts_changes(entry.is_pending):
            answer(ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
            return
        wall_ms = self._env.wall_ms()
        known = entry.transaction
        if entry.is_in_doubt and known.state.may_expire:
            known = replace(known, producer_epoch=LAST_PRODUCER_EPOCH)
        outcome = initialize(known, given, timeout_ms, wall_ms, self._fresh_producer_id)
        if isinstance(outcome, FenceFirst):
            self._fence(entry, lambda code, _: answer(code or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER))
        else:
            self._settle(entry, outcome, answer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        client_version: int,
        answer: Answer,
    ) -> None:
        entry = self._entries.get(transactional_id)
        if entry is None:
            answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING, NO_PRODUCER)
        elif entry.is_in_doubt:
            answer(ErrorCode.PRODUCER_FENCED, NO_PRODUCER)
        elif not accepts_changes(entry.is_pending):
            answer(ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER)
        else:
            wall_ms = self._env.wall_ms()
            outcome = add_partitions(entry.transaction, producer, frozenset(partitions), client_version, wall_ms)
            if isinstance(outcome, TransactionChange) and not can_be_ended(
                outcome.after, self._partition.log.config.max_message_bytes
            ):
                outcome = ErrorCode.UNKNOWN_SERVER_ERROR
            self._settle(entry, outcome, answer)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> ErrorCode | frozenset[TopicPartition]:
        """Returns the partitions that take part in the open transaction, or an error for all."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if entry.is_in_doubt:
            return ErrorCode.PRODUCER_FENCED
        return verify_partitions(entry.transaction, producer, frozenset(partitions))

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool, client_version: int, answer: Answer
    ) -> None:
        entry = self._entries.get(transactional_id)
        if entry is None:
            answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING, NO_PRODUCER)
            return
        if entry.is_in_doubt:
            answer(ErrorCode.PRODUCER_FENCED, NO_PRODUCER)
            return
        before, is_pending, wall_ms = entry.transaction, not accepts_changes(entry.is_pending), self._env.wall_ms()
        if client_version < EPOCH_PER_TRANSACTION:
            outcome = end(before, producer, commit=commit, is_pending=is_pending, wall_ms=wall_ms)
        else:
            outcome = end_with_new_epoch(
                before,
                producer,
                commit=commit,
                is_pending=is_pending,
                wall_ms=wall_ms,
                fresh_producer_id=self._fresh_producer_id,
            )
        self._settle(entry, outcome, answer)

    def _fence(self, entry: TransactionEntry, answer: Answer) -> None:
        """Abort the open transaction of an id with an epoch that its producer does not have."""
        outcome = fence(entry.transaction, self._transaction_version(), self._env.wall_ms(), self._fresh_producer_id)
        if entry.is_in_doubt and isinstance(outcome, TransactionChange):
            outcome = self._with_successor(outcome)
        self._settle(entry, outcome, answer)

    def _with_successor(self, change: TransactionChange) -> Outcome:
        """In the record of the outcome, so that the next coordinator does not take the id for one without doubts."""
        if change.after.next_producer_id != NO_PRODUCER_ID:
            return change
        fresh = self._fresh_producer_id()
        if fresh is None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return replace(change, after=replace(change.after, next_producer_id=fresh))

    # changes

    def _settle(self, entry: TransactionEntry, outcome: Outcome, answer: Answer) -> None:
        if isinstance(outcome, ErrorCode):
            answer(outcome, NO_PRODUCER)
            self._forget_if_no_record(entry)
        elif isinstance(outcome, ProducerIdAndEpoch):
            answer(ErrorCode.NONE, outcome)
        else:
            self._write(entry, outcome, answer)

    def _write(self, entry: TransactionEntry, change: TransactionChange, answer: Answer) -> None:
        """Write a change; `entry` has the new state once it is committed."""
        entry.is_pending = True

        def apply() -> None:
            if entry.transaction.state is not TransactionState.ONGOING:
                entry.open_since_ms = self._env.now_ms()
            entry.is_in_doubt = entry.is_in_doubt and change.after.producer_id == entry.transaction.producer_id
            entry.transaction = change.after
            entry.is_pending = False
            if change.after.state.is_prepared:
                self._write_markers(entry)

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and code is not ErrorCode.REQUEST_TIMED_OUT:
                entry.is_pending = False
                self._forget_if_no_record(entry)
            code = AS_COORDINATOR.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
            answer(code, change.answer if code is ErrorCode.NONE else NO_PRODUCER)

        self._append(change.after, apply, written)

    def _append(self, after: Transaction, apply: Callable[[], None], written: Callable[[ErrorCode], None]) -> None:
        value = transaction_value(after, self._transaction_version())
        record = (transaction_key(after.transactional_id), value, (), self._env.wall_ms())
        self._writer.append(encode_batch([record]), apply, written)

    def _forget_if_no_record(self, entry: TransactionEntry) -> None:
        transaction = entry.transaction
        if transaction.producer_epoch == NO_PRODUCER_EPOCH and not entry.is_pending:
            self._entries.pop(transaction.transactional_id, None)

    # markers

    def _write_markers(self, entry: TransactionEntry) -> None:
        """The outcome is committed: carry it out. The entry is pending until its completion is committed."""
        entry.is_pending = True
        entry.job = MarkerJob(entry.transaction, self._writer.leader_epoch, lambda: self._complete(entry))
        if entry.job.left:
            self._markers.send(entry.job)
        else:
            self._complete(entry)

    def _complete(self, entry: TransactionEntry) -> None:
        if not self.leads:
            return
        after = complete(entry.transaction, self._env.wall_ms())
        if entry.is_in_doubt and after.producer_id == entry.transaction.producer_id:
            # without it the next coordinator would give epochs of this producer id again
            after = replace(after, producer_epoch=LAST_PRODUCER_EPOCH)

        def apply() -> None:
            entry.is_in_doubt = False
            entry.transaction, entry.job, entry.is_pending = after, None, False

        def again() -> None:
            self.waiting_completions -= 1
            self._complete(entry)

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and code is not ErrorCode.REQUEST_TIMED_OUT and self.leads:
                self.waiting_completions += 1
                self._env.call_later(COMPLETION_BACKOFF_MS, again)

        self._append(after, apply, written)

    # what happens by itself

    def _every(self, name: str, interval_ms: int, action: Callable[[], None]) -> None:
        def run() -> None:
            if self.leads:
                action()
                self._every(name, interval_ms, action)

        self._timers[name] = self._env.call_later(interval_ms, run)

    def _abort_overdue(self) -> None:
        for entry in list(self._entries.values()):
            if not entry.is_pending and is_overdue(entry, self._env.wall_ms(), self._env.now_ms()):
                self._env.log(
                    "info",
                    "transaction-timed-out",
                    transactional_id=entry.transaction.transactional_id,
                    producer_id=entry.transaction.producer_id,
                    producer_epoch=entry.transaction.producer_epoch,
                    timeout_ms=entry.transaction.timeout_ms,
                )
                self._fence(entry, _no_client)

    def _delete_expired(self) -> None:
        oldest_ms = self._env.wall_ms() - self._config.expiration_ms
        expired = [entry for entry in self._entries.values() if has_expired(entry, oldest_ms)]
        for entries in in_batches(expired, self._partition.log.config.max_message_bytes):
            self._delete(entries)

    def _delete(self, entries: list[TransactionEntry]) -> None:
        """Write tombstones; the ids are unknown once these are committed."""
        for entry in entries:
            entry.is_pending = True

        def apply() -> None:
            for entry in entries:
                self._entries.pop(entry.transaction.transactional_id, None)

        def written(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE and code is not ErrorCode.REQUEST_TIMED_OUT:
                for entry in entries:
                    entry.is_pending = False

        self._writer.append(tombstones(entries, self._env.wall_ms()), apply, written)

    # the end

    def close(self) -> None:
        """This broker is not the coordinator any more: drop everything, and answer the waiting requests."""
        self._writer.close()

    def _drop(self) -> None:
        self._loader.stop()
        for cancel in self._timers.values():
            cancel()
        entries, self._entries = self._entries, {}
        for entry in entries.values():
            if entry.job is not None:
                entry.job.cancelled = True


def _no_client(code: ErrorCode, producer: ProducerIdAndEpoch) -> None:
    """An answer without a client."""
