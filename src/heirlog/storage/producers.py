"""The producers of a partition: their last batches, so that a retry is recognised, and their open transaction (KIP-98).

For a batch of producer id p, epoch e, sequences b to l, where the last known batch of p ended at sequence s:

    p unknown               accepted: its state may have gone with retention or expired
    e < known epoch         INVALID_PRODUCER_EPOCH
    e > known epoch         b must be 0, else OUT_OF_ORDER_SEQUENCE_NUMBER
    one of the last five    a duplicate: answered with the original's offsets, nothing is written
    l at or before s        DUPLICATE_SEQUENCE_NUMBER: written long ago, its offset is forgotten; but not for sequences
                            before the first known batch of the epoch: it is unknown whether those were ever written
    b = s + 1               accepted (2^31-1 is followed by 0)
    else                    OUT_OF_ORDER_SEQUENCE_NUMBER

The first transactional batch of a producer opens its transaction, and a marker ends it (`transactions.py`):

    a marker of epoch e         e < known epoch: INVALID_PRODUCER_EPOCH. From transaction.version 2 on each transaction
                                has an epoch of its own, and the marker the next one: e = known epoch is then accepted
                                only without an open transaction, as a repeat (KIP-890)
    of coordinator epoch c      c < that of the last marker: TRANSACTION_COORDINATOR_FENCED
    another epoch than before   the producer's batches are forgotten: the next one begins at sequence 0
    no open transaction         accepted: the coordinator repeats markers, and adds partitions before their first batch

Followers do not check, they only remember: the leader has checked already.

State is rebuilt from the newest usable `.snapshot` and the batches after it. A snapshot is Kafka's: version int16,
CRC-32C of the rest, then an array of entries. It holds only the last batch of each producer, so after a restart an
older retry is answered with DUPLICATE_SEQUENCE_NUMBER instead of its offset. The format does not say which sequences
before that batch were written. A producer that was forgotten may have continued at any number, and a producer that gets
"duplicate" for a batch that was never written loses the batch. So the first sequence of each producer follows the
array, int32 each in the array's order, unless it is that of the batch itself. Apache Kafka does not read that far. In a
snapshot of Apache Kafka it is missing, and then only the batch itself counts as written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from heirlog.env import File, Files
from heirlog.protocol.batch import LAST_SEQUENCE, NO_PRODUCER_EPOCH, TRANSACTIONAL, BatchHeader, advance_sequence
from heirlog.protocol.checksum import crc32c
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.transaction_marker import EPOCH_PER_TRANSACTION, TransactionMarker
from heirlog.storage.atomic import read_file
from heirlog.storage.errors import LogError
from heirlog.storage.transaction_index import AbortedTransaction
from heirlog.storage.transactions import Transactions
from heirlog.storage.verification import UNVERIFIED, VerificationGuard, VerificationGuards

BATCHES_REMEMBERED = 5
SNAPSHOT_SUFFIX = ".snapshot"

_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_FIRST_SEQUENCE = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
NO_COORDINATOR_EPOCH = -1
NO_TRANSACTION = -1
_HALF_OF_ALL_SEQUENCES = 2**30


def is_of_newest_coordinator(coordinator_epoch: int, known_epoch: int) -> bool:
    """Guard 29: a marker is of the newest coordinator epoch that the partition knows, or of a newer one.

    Without it a late marker of a coordinator that was replaced ends the next transaction of a producer that keeps its
    epoch, and perhaps the other way.
    """
    return coordinator_epoch >= known_epoch


def ends_own_epoch(producer_epoch: int, known_epoch: int, needs_higher: bool) -> bool:
    """Guard 30: from transaction.version 2 on, a marker of the epoch of an open transaction does not end it (KIP-890).

    Without it a marker that arrives a second time ends the next transaction, which has the epoch of that marker.
    """
    return producer_epoch > known_epoch or not needs_higher


class ProducedBatch(NamedTuple):
    base_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_sequence", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int, last_timestamp: int, first_sequence: int) -> None:
        self.epoch = epoch
        self.first_sequence = first_sequence
        """Every sequence of the epoch from this one on was written."""
        self.last_timestamp = last_timestamp
        """Of the last batch or marker."""
        self.batches: deque[ProducedBatch] = deque(maxlen=BATCHES_REMEMBERED)
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        """Of the last marker."""
        self.transaction_start = NO_TRANSACTION
        """First offset of the open transaction."""

    def has_open_transaction(self, epoch: int) -> bool:
        """Whether the producer's transaction of this epoch is open."""
        return self.transaction_start != NO_TRANSACTION and self.epoch == epoch


class ProducerStateManager:
    """The producers of one partition."""

    __slots__ = ("guards", "producers", "transactions")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerStateEntry] = {}
        self.transactions = Transactions()
        self.guards = VerificationGuards()

    def check(self, header: BatchHeader, *, guard: VerificationGuard | None = None) -> ProducedBatch | None:
        """The original if this is a repeat of one of the last five batches, None if it may be appended.

        guard: of a transactional batch that was verified. Raises LogError with Kafka's code otherwise.
        """
        state = self.producers.get(header.producer_id)
        is_transactional = header.attributes & TRANSACTIONAL
        if is_transactional:
            original = self._repeated(header, state)
            if original is not None:
                return original
            self._check_transaction(header, state, guard)
        elif self.guards.get(header.producer_id) is not None and self._repeated(header, state) is None:
            self._check_order(header, state)
        if state is None:
            return None
        if header.producer_epoch < state.epoch:
            raise _fenced(header.producer_id, state.epoch, "batch", header.producer_epoch)
        if header.producer_epoch > state.epoch:
            original = None
            if header.base_sequence != 0 and state.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(header, "a new epoch begins at sequence 0")
        else:
            original = self._check_sequence(header, state)
        if state.transaction_start != NO_TRANSACTION and original is None and not is_transactional:
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction from offset {state.transaction_start} on, and "
                "this batch is not part of one",
            )
        return original

    def check_offsets(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """Whether a group coordinator may append offsets of a transaction. Raises LogError."""
        self._check_transaction(header, self.producers.get(header.producer_id), guard)

    def needs_verification(self, producer_id: int, epoch: int) -> bool:
        """Whether a transactional batch of this epoch would begin a transaction here. Raises INVALID_PRODUCER_EPOCH."""
        state = self.producers.get(producer_id)
        if state is None:
            return True
        if epoch < state.epoch:
            raise _fenced(producer_id, state.epoch, "batch", epoch)
        return not state.has_open_transaction(epoch)

    @staticmethod
    def _repeated(header: BatchHeader, state: ProducerStateEntry | None) -> ProducedBatch | None:
        """The batch that this one repeats, if it is one of the last five."""
        if state is None or state.epoch != header.producer_epoch:
            return None
        sequences = (header.base_sequence, header.last_sequence)
        return next((batch for batch in state.batches if batch[:2] == sequences), None)

    def _check_transaction(
        self, header: BatchHeader, state: ProducerStateEntry | None, guard: VerificationGuard | None
    ) -> None:
        """Whether the batch continues an open transaction, or was verified to begin one. Raises LogError."""
        if state is not None and header.producer_epoch < state.epoch:
            raise _fenced(header.producer_id, state.epoch, "batch", header.producer_epoch)
        if state is not None and state.has_open_transaction(header.producer_epoch):
            return
        if guard is UNVERIFIED:
            return
        self.guards.check(header, guard)
        self._check_begin(header, state)

    def _check_order(self, header: BatchHeader, state: ProducerStateEntry | None) -> None:
        """Of a batch without a transaction, while the first one of a transaction is being verified. Raises LogError."""
        if state is not None and header.producer_epoch < state.epoch:
            raise _fenced(header.producer_id, state.epoch, "batch", header.producer_epoch)
        self.guards.check_order(header)
        self._check_begin(header, state)

    def _check_begin(self, header: BatchHeader, state: ProducerStateEntry | None) -> None:
        """Of the first batch of a producer that raises its epoch with each transaction. Raises LogError."""
        guard = self.guards.get(header.producer_id)
        is_first = state is None or not state.batches
        if guard is not None and guard.raises_epoch and header.base_sequence and is_first:
            raise self._out_of_order(header, "each transaction begins at sequence 0")

    def check_marker(
        self, marker: TransactionMarker, producer_id: int, producer_epoch: int, transaction_version: int
    ) -> None:
        """Whether a coordinator's marker may be appended.

        transaction_version: the level under which the coordinator ended the transaction (KIP-1228). Raises LogError
        with Kafka's code.
        """
        state = self.producers.get(producer_id)
        if state is not None:
            is_repeat = state.transaction_start == NO_TRANSACTION and producer_epoch == state.epoch
            needs_higher = transaction_version >= EPOCH_PER_TRANSACTION and not is_repeat
            if producer_epoch < state.epoch or not ends_own_epoch(producer_epoch, state.epoch, needs_higher):
                raise _fenced(producer_id, state.epoch, "marker", producer_epoch)
        known_epoch = NO_COORDINATOR_EPOCH if state is None else state.coordinator_epoch
        if not is_of_newest_coordinator(marker.coordinator_epoch, known_epoch):
            raise LogError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the last marker of producer {producer_id} is of coordinator epoch {known_epoch}; this one is of "
                f"{marker.coordinator_epoch}",
            )

    def _check_sequence(self, header: BatchHeader, state: ProducerStateEntry) -> ProducedBatch | None:
        if not state.batches:
            if header.base_sequence != 0 and state.epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(header, "the epoch begins at sequence 0")
            return None
        last = state.batches[-1][1]
        if header.base_sequence == (last + 1) & LAST_SEQUENCE:
            return None
        last_sequence = header.last_sequence
        for batch in state.batches:
            if batch.base_sequence == header.base_sequence and batch.last_sequence == last_sequence:
                return batch
        is_known = advance_sequence(header.base_sequence, -state.first_sequence) < _HALF_OF_ALL_SEQUENCES
        if is_known and advance_sequence(last, -last_sequence) < _HALF_OF_ALL_SEQUENCES:
            raise LogError(
                ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
                f"producer {header.producer_id} wrote sequences {header.base_sequence} to {last_sequence} before its "
                f"last {BATCHES_REMEMBERED} batches; it is at {last}",
            )
        raise self._out_of_order(header, f"the last known one is {last}")

    @staticmethod
    def _out_of_order(header: BatchHeader, why: str) -> LogError:
        return LogError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {header.base_sequence} does not "
            f"follow, {why}",
        )

    def update(self, header: BatchHeader) -> None:
        """Note that a producer's data batch with this header is in the log (offsets as stored)."""
        delta, timestamp_ms, base_sequence = header[6], header[8], header[11]
        if base_sequence < 0:
            return
        state = self.producers.get(header.producer_id)
        if state is None:
            state = ProducerStateEntry(header.producer_epoch, timestamp_ms, base_sequence)
            self.producers[header.producer_id] = state
        elif state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            state.first_sequence = base_sequence
            state.batches.clear()
        elif not state.batches or base_sequence != (state.batches[-1][1] + 1) & LAST_SEQUENCE:
            # its leader had forgotten the producer, and this log had not: earlier sequences are unknown
            state.first_sequence = base_sequence
        state.last_timestamp = timestamp_ms
        last_sequence = (base_sequence + delta) & LAST_SEQUENCE
        state.batches.append(ProducedBatch(base_sequence, last_sequence, header[0] + delta, delta, timestamp_ms))
        if header[5] & TRANSACTIONAL:
            self.guards.appended(header.producer_id)
            if state.transaction_start == NO_TRANSACTION:
                state.transaction_start = header[0]
                self.transactions.begin(header.producer_id, header[0])

    def end_transaction(self, marker: TransactionMarker, header: BatchHeader) -> AbortedTransaction | None:
        """Note that a control batch with this marker is in the log; the entry for the index if it aborts anything."""
        self.guards.ended(header.producer_id, header.producer_epoch)
        state = self.producers.get(header.producer_id)
        if state is None:
            state = ProducerStateEntry(header.producer_epoch, header.max_timestamp, 0)
            self.producers[header.producer_id] = state
        elif state.epoch != header.producer_epoch:
            state.epoch = header.producer_epoch
            state.batches.clear()
        state.last_timestamp = header.max_timestamp
        state.coordinator_epoch = marker.coordinator_epoch
        if state.transaction_start == NO_TRANSACTION:
            return None
        state.transaction_start = NO_TRANSACTION
        completed = self.transactions.complete(header.producer_id, header.last_offset)
        return None if marker.commit else AbortedTransaction(header.producer_id, *completed)

    def remove_expired(self, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers whose last batch is `expiration_ms` old (producer.id.expiration.ms); returns how many.

        Those with an open transaction stay: its marker has to find them.
        """
        self.guards.expire(wall_ms - expiration_ms)
        expired = [
            producer_id
            for producer_id, state in self.producers.items()
            if wall_ms - state.last_timestamp >= expiration_ms and state.transaction_start == NO_TRANSACTION
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def encode(self) -> bytes:
        entries = bytearray(_COUNT.pack(len(self.producers)))
        first_sequences = bytearray()
        is_more_known = False
        for producer_id, state in sorted(self.producers.items()):
            last = state.batches[-1] if state.batches else ProducedBatch(-1, -1, -1, 0, state.last_timestamp)
            entries += _ENTRY.pack(
                producer_id,
                state.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                state.last_timestamp,
                state.coordinator_epoch,
                state.transaction_start,
            )
            first_sequences += _FIRST_SEQUENCE.pack(state.first_sequence)
            is_more_known = is_more_known or (bool(state.batches) and state.first_sequence != last.base_sequence)
        if is_more_known:
            entries += first_sequences
        return _HEAD.pack(_VERSION, crc32c(entries)) + entries

    @classmethod
    def decode(cls, data: bytes) -> ProducerStateManager | None:
        """None if this is not a whole snapshot."""
        if len(data) < _HEAD.size + _COUNT.size:
            return None
        version, crc = _HEAD.unpack_from(data)
        rest = memoryview(data)[_HEAD.size :]
        (count,) = _COUNT.unpack_from(rest)
        entries_end = _COUNT.size + count * _ENTRY.size
        with_first_sequences = entries_end + count * _FIRST_SEQUENCE.size
        if version != _VERSION or crc32c(rest) != crc or len(rest) not in (entries_end, with_first_sequences):
            return None
        states = cls()
        for entry in _ENTRY.iter_unpack(rest[_COUNT.size : entries_end]):
            states._enter(*entry)
        for state, (first_sequence,) in zip(
            states.producers.values(), _FIRST_SEQUENCE.iter_unpack(rest[entries_end:]), strict=False
        ):
            state.first_sequence = first_sequence
        states._begin_transactions()
        return states

    def _begin_transactions(self) -> None:
        opened = [(state.transaction_start, producer_id) for producer_id, state in self.producers.items()]
        for first_offset, producer_id in sorted(opened):
            if first_offset != NO_TRANSACTION:
                self.transactions.begin(producer_id, first_offset)

    def _enter(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        last_offset: int,
        offset_delta: int,
        timestamp_ms: int,
        coordinator_epoch: int,
        transaction_start: int,
    ) -> None:
        base_sequence = advance_sequence(last_sequence, -offset_delta)
        state = self.producers[producer_id] = ProducerStateEntry(epoch, timestamp_ms, base_sequence)
        if last_offset >= 0:
            state.batches.append(ProducedBatch(base_sequence, last_sequence, last_offset, offset_delta, timestamp_ms))
        state.coordinator_epoch = coordinator_epoch
        state.transaction_start = transaction_start


def _fenced(producer_id: int, epoch: int, what: str, epoch_of_it: int) -> LogError:
    return LogError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {producer_id} has epoch {epoch} by now; this {what} is of epoch {epoch_of_it}",
    )


def snapshot_offsets(files: Files, dir_path: str) -> list[int]:
    """The offsets of the snapshot files, rising. Each file holds the state before its offset."""
    return [
        int(name.removesuffix(SNAPSHOT_SUFFIX))
        for name in files.list(dir_path)
        if name.endswith(SNAPSHOT_SUFFIX) and name.removesuffix(SNAPSHOT_SUFFIX).isdecimal()
    ]


def snapshot_path(dir_path: str, offset: int) -> str:
    return f"{dir_path}/{offset:020d}{SNAPSHOT_SUFFIX}"


def read_newest_snapshot(files: Files, dir_path: str, at_most: int) -> tuple[int, ProducerStateManager] | None:
    """The newest usable snapshot at or below offset `at_most`.

    Incomplete ones are skipped: with an older one only more of the log is read again."""
    for offset in reversed(snapshot_offsets(files, dir_path)):
        if offset > at_most:
            continue
        data = read_file(files, snapshot_path(dir_path, offset))
        states = None if data is None else ProducerStateManager.decode(data)
        if states is not None:
            return offset, states
    return None


def write_snapshot(
    files: Files, dir_path: str, offset: int, states: ProducerStateManager, on_flushed: Callable[[OSError | None], None]
) -> None:
    file = files.open(snapshot_path(dir_path, offset), create=True)
    file.truncate(0)
    file.append(states.encode())

    def flushed(error: OSError | None, file: File = file) -> None:
        file.close()
        on_flushed(error)

    files.flush(file, flushed)


def remove_snapshots(files: Files, dir_path: str, where: Callable[[int], bool]) -> bool:
    """Unlink the snapshots whose offset satisfies `where`; returns whether there were any."""
    gone = [offset for offset in snapshot_offsets(files, dir_path) if where(offset)]
    for offset in gone:
        files.unlink(snapshot_path(dir_path, offset))
    return bool(gone)
