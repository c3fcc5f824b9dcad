"""What the listeners receive: the committed log, in order, each record once per start.

    on_snapshot            the newest snapshot, if there is one (also one downloaded later: start again from it)
    on_commit ...          everything between it and the high watermark, then as the high watermark moves
    on_leader_change       of a new leader about itself: only after its own first batch was seen by on_commit

A batch of control records is delivered with no records, so that a listener's applied offset has no holes: a broker is
caught up when it has applied an *offset*.

There are two sources and one order. A leader keeps the records that it appended until they are committed, and delivers
these objects. All other records (after a start, or on an observer) are read from the log and decoded. A long log is
decoded in slices, with other work in between, so that a starting node does not look dead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from heirlog.env import Env
from heirlog.protocol.batch import BatchHeader, InvalidBatch, decode_records, walk
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.metadata_record import decode_record
from heirlog.protocol.primitives import Message
from heirlog.protocol.records import NoOpRecord
from heirlog.raft.metadata_log import MetadataLog
from heirlog.raft.snapshot import Snapshot

SLICE_BYTES = 256 * 1024
"""Bytes decoded without a pause: some milliseconds of work."""


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    base_offset: int
    last_offset: int
    epoch: int
    append_time_ms: int
    records: list[Message]
    """Empty for a batch of control records."""
    last_record_bytes: int = 0
    """Size of the last record's value in the log; 0 without records."""


class QuorumListener(Protocol):
    """Called in the order above, never inside a call to the quorum."""

    def on_snapshot(self, records: list[Message], offset: int, epoch: int) -> None:
        """Replace all state by these records; `offset` is that of the last record in the snapshot."""

    def on_commit(self, batches: list[CommittedBatch]) -> None: ...

    def on_leader_change(self, leader_id: int, epoch: int, is_me: bool) -> None:
        """leader_id -1: the leader is not known."""


class Replay:
    def __init__(
        self, env: Env, log: MetadataLog, listeners: Sequence[QuorumListener], fatal: Callable[[str], None]
    ) -> None:
        self._env = env
        self._log = log
        self._listeners = listeners
        self._fatal = fatal
        self._remembered: deque[CommittedBatch] = deque()
        self._slice_is_coming = False
        self._read_ahead: list[CommittedBatch] = []
        self._closed = False
        self._waiting: tuple[int, Callable[[], None]] | None = None
        self.high_watermark = -1
        """Exclusive; -1 while unknown."""
        self.next_offset = 0
        """All records below it were delivered."""
        self.changed_offset = 0
        """Exclusive: the end of the last batch below `next_offset` that holds more than NoOps."""

    def load(self, snapshot: Snapshot) -> None:
        """Deliver a snapshot instead of the log up to its end."""
        self.next_offset = self.changed_offset = snapshot.id.end_offset
        self.high_watermark = max(self.high_watermark, snapshot.id.end_offset)
        try:
            records = list(snapshot.records())
        except (KafkaError, ValueError) as error:
            self._fatal(f"the metadata snapshot {snapshot.id.file_name} holds a record that cannot be read: {error}")
            return
        for listener in self._listeners:
            listener.on_snapshot(records, snapshot.id.end_offset - 1, snapshot.id.epoch)

    def remember(self, batch: CommittedBatch) -> None:
        """Keep a leader's own append, which is not committed yet."""
        self._remembered.append(batch)

    def forget_appended(self) -> None:
        """This node leads no more: what it appended may be truncated, and other records may take its offsets."""
        self._remembered.clear()
        self._read_ahead = []
        self._waiting = None

    def when_delivered(self, offset: int, fn: Callable[[], None]) -> None:
        """Run `fn` once everything below `offset` was delivered. One at a time."""
        self._waiting = (offset, fn)

    def committed_to(self, high_watermark: int) -> None:
        """All records below it are committed and in the log. Never goes back."""
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
        if not self._slice_is_coming:
            self._deliver()

    def will_be_committed_to(self, high_watermark: int) -> bool:
        """Announce a call of `committed_to`, which must follow at once. True if that will deliver everything."""
        self.high_watermark = max(self.high_watermark, high_watermark)
        if self.next_offset >= self.high_watermark:
            return True
        if self._slice_is_coming or self._closed:
            return False
        self._read_ahead = self._from_memory() or self._from_log()
        return bool(self._read_ahead) and self._read_ahead[-1].last_offset + 1 >= self.high_watermark

    @property
    def slice_is_coming(self) -> bool:
        """Some records below the high watermark are not delivered yet: they follow in later turns."""
        return self._slice_is_coming

    def close(self) -> None:
        self._closed = True

    def _deliver(self) -> None:
        self._slice_is_coming = False
        if self._closed or self.next_offset >= self.high_watermark:
            return
        batches = self._read_ahead or self._from_memory() or self._from_log()
        self._read_ahead = []
        if not batches:
            return
        self.next_offset = batches[-1].last_offset + 1
        for batch in reversed(batches):
            if any(not isinstance(record, NoOpRecord) for record in batch.records):
                self.changed_offset = batch.last_offset + 1
                break
        for listener in self._listeners:
            listener.on_commit(batches)
        if self._waiting is not None and self.next_offset >= self._waiting[0]:
            fn = self._waiting[1]
            self._waiting = None
            fn()
        if self.next_offset < self.high_watermark and not self._slice_is_coming:
            self._slice_is_coming = True
            self._env.call_later(0, self._deliver)

    def _from_memory(self) -> list[CommittedBatch]:
        remembered = self._remembered
        while remembered and remembered[0].base_offset < self.next_offset:
            remembered.popleft()
        batches: list[CommittedBatch] = []
        expected = self.next_offset
        while remembered and remembered[0].base_offset == expected:
            if remembered[0].last_offset >= self.high_watermark:
                break
            expected = remembered[0].last_offset + 1
            batches.append(remembered.popleft())
        return batches

    def _from_log(self) -> list[CommittedBatch]:
        try:
            data = self._log.read_bytes(self.next_offset, SLICE_BYTES, self.high_watermark)
            found = ((position, header) for position, header in walk(data) if header.base_offset >= self.next_offset)
            return [
                self._decode(data, position, header)
                for position, header in found
                if header.last_offset < self.high_watermark
            ]
        except OSError as error:
            self._fatal(f"the metadata log cannot be read at or after offset {self.next_offset}: {error}")
        except InvalidBatch as error:
            self._fatal(f"the metadata log is damaged at or after offset {self.next_offset}: {error}")
        except (KafkaError, ValueError) as error:
            self._fatal(
                f"the metadata log holds a record at or after offset {self.next_offset} that this release cannot read: "
                f"{error}"
            )
        return []

    def _decode(self, data: bytes, position: int, header: BatchHeader) -> CommittedBatch:
        records = [] if header.is_control else decode_records(data, position, header=header)
        values = [record.value for record in records if record.value is not None]
        return CommittedBatch(
            header.base_offset,
            header.last_offset,
            header.leader_epoch,
            header.max_timestamp,
            [decode_record(value) for value in values],
            len(values[-1]) if values else 0,
        )
