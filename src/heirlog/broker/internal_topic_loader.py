"""Loads the state of an internal topic's partition from its log, on the broker that leads it.

    reading a slice --> the next turn --> ... --> everything below the start of this leader epoch is read --> done
        |     ^
        +-----+ the high watermark has not come that far yet
    the leader epoch is over, the disk failed, stopped: loading ends without a callback

It reads in slices, so that a long log does not block the broker. The part of the log that the former leaders wrote is
committed once the high watermark has reached the start of this leader's epoch; loading waits for that.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.env import Env
from heirlog.protocol.batch import BatchHeader, InvalidBatch, Record, crc_matches, decode_records, walk
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.transaction_marker import TransactionMarker, read_marker
from heirlog.protocol.types import PartitionKey
from heirlog.storage.errors import DamagedLog

LOAD_SLICE_BYTES = 64 * 1024
"""Takes about ten milliseconds to read."""
_WAIT_MS = 60_000


def _ignored(producer_id: int, marker: TransactionMarker) -> None:
    """Of a topic without transactions."""


class InternalTopicLoader:
    """Loads one partition once, for its leader epoch at creation.

    on_record: called with every record in the log's order, and the header of its batch. What a transactional batch says
    counts once on_marker is called with its producer id and a marker that commits. on_unreadable: called with the
    offset of a batch that cannot be read; it is skipped. on_done: called once. The object is also the operation that
    waits for the high watermark in the purgatory of produce requests.
    """

    def __init__(
        self,
        env: Env,
        replicas: ReplicaManager,
        partition: Partition,
        *,
        on_record: Callable[[BatchHeader, Record], None],
        on_marker: Callable[[int, TransactionMarker], None] = _ignored,
        on_unreadable: Callable[[int, Exception], None],
        on_done: Callable[[], None],
    ) -> None:
        self.number = -1
        self._env = env
        self._replicas = replicas
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._on_record = on_record
        self._on_marker = on_marker
        self._on_unreadable = on_unreadable
        self._on_done = on_done
        self._next_offset = partition.log.log_start_offset
        self._watching = False
        self._stopped = False
        self._as_it_is = False
        """The log is damaged, and it is the only copy."""

    @property
    def _goes_on(self) -> bool:
        partition = self._partition
        return (
            partition.role is ReplicaRole.LEADER and partition.leader_epoch == self._leader_epoch and not self._stopped
        )

    @property
    def waits(self) -> bool:
        """Whether everything that is committed, as far as this broker knows, is read."""
        return self._watching

    def read(self) -> None:
        """Start reading; it continues on its own until everything is read."""
        if not self._goes_on:
            return
        partition = self._partition
        target = partition.leader_epoch_start_offset
        self._next_offset = max(self._next_offset, partition.log.log_start_offset)
        if self._next_offset >= target:
            self._on_done()
        elif self._next_offset >= min(partition.high_watermark, target):
            self._watch()
        elif self._read_slice(min(partition.high_watermark, target)):
            self._env.call_later(0, self.read)

    def unread(self) -> list[Record] | None:
        """The records behind the high watermark that loading waits for; None: too many, or they cannot be read."""
        end_offset = self._partition.leader_epoch_start_offset
        found: list[Record] = []
        try:
            regions = self._partition.log.read(self._next_offset, LOAD_SLICE_BYTES, end_offset).regions
            data = b"".join(region.read() for region in regions)
            next_offset = self._next_offset
            for position, header in walk(data):
                next_offset = header.next_offset
                if header.record_count and not header.is_control:
                    found += decode_records(data, position)
        except (DamagedLog, KafkaError, OSError):
            return None
        return found if next_offset >= end_offset else None

    def stop(self) -> None:
        self._stopped = True
        if self._watching:
            self._watching = False
            self._replicas.delayed.produce.remove(self)

    def _read_slice(self, upto_offset: int) -> bool:
        """Read one slice; False if the disk failed."""
        segment_end = self._partition.log.segment_end(self._next_offset)
        try:
            found = self._partition.log.read(self._next_offset, LOAD_SLICE_BYTES, upto_offset, as_it_is=self._as_it_is)
            data = b"".join(region.read() for region in found.regions)
        except DamagedLog as error:
            if self._replicas.damaged_logs.found(self._partition, error):
                return False
            # the only copy: what is sound of it is better than no state at all
            if self._as_it_is:
                self._skip_to(segment_end, error)
            self._as_it_is = True
            return True
        except OSError as error:
            self._replicas.storage_failed(self._partition, error)
            return False
        if not data:
            # there is nothing to read in a gap that compaction left
            self._next_offset = upto_offset
            return True
        try:
            for position, header in walk(data):
                if not self._as_it_is or self._is_sound(data, position, header):
                    self._read_batch(data, position, header)
                elif position + header.size < len(data) or header.next_offset == min(upto_offset, segment_end):
                    self._on_unreadable(header.base_offset, InvalidBatch("the CRC does not match"))
                elif position:
                    # it may be wrong about its last offset: read it again with the batch after it, which shows that
                    break
                else:
                    raise InvalidBatch(f"the batch at offset {header.base_offset} may not end where its header says")
                self._next_offset = header.next_offset
        except InvalidBatch as error:
            self._skip_to(segment_end, error)
        return True

    def _is_sound(self, data: bytes, position: int, header: BatchHeader) -> bool:
        """Check what `Log.read` has not checked. Raises InvalidBatch if the batch does not continue what was read.

        The first one may begin earlier: a log start or a high watermark can be inside a batch.
        """
        is_next = header.base_offset == self._next_offset
        if not is_next and (position or not header.base_offset < self._next_offset < header.next_offset):
            raise InvalidBatch(f"a batch at offset {header.base_offset}, where {self._next_offset} is expected")
        return crc_matches(data, position, header) and self._partition.log.epochs.agrees(header)

    def _read_batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        if not header.record_count:
            return
        if header.is_control:
            self._read_marker(data, position, header)
            return
        try:
            records = decode_records(data, position)
        except KafkaError as error:
            self._on_unreadable(header.base_offset, error)
            return
        for record in records:
            self._on_record(header, record)

    def _skip_to(self, segment_end: int, error: Exception) -> None:
        """The headers of the segment do not say where the next batch is, or which offset it has."""
        self._on_unreadable(self._next_offset, error)
        self._next_offset = segment_end

    def _read_marker(self, data: bytes, position: int, header: BatchHeader) -> None:
        try:
            marker = read_marker(memoryview(data)[position : position + header.size], header)
        except KafkaError as error:
            self._on_unreadable(header.base_offset, error)
            return
        if marker is not None:
            self._on_marker(header.producer_id, marker)

    # waiting for the high watermark

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return (self._partition.key,)

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._replicas.delayed.produce.watch(self, _WAIT_MS)

    def try_complete(self, key: PartitionKey) -> bool:
        if not self._goes_on:
            self._watching = False
            return True
        if self._partition.high_watermark <= self._next_offset:
            return False
        self._watching = False
        self._env.call_later(0, self.read)
        return True

    def on_expiration(self) -> None:
        self._watching = False
        if self._goes_on:
            self._watch()
