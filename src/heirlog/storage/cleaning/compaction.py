"""One cleaning pass of a log: find the last offset of each key in the dirty part, then rewrite all segments before its
end.

    map       first dirty offset --> end of the dirty part, or where the map is full: `mapped_to`
    rewrite   each group of neighbouring segments from the log's first one up to `mapped_to`
    swap      flush, sync, rename (`swap.py`); then the next group
    done      the log is clean up to `mapped_to`

Which records stay (those at or above `mapped_to` all stay, except aborted ones):

    a key without a later record in the dirty part     stays, but a tombstone only until its delete horizon
    another record with its key comes later            is removed
    no key                                             is removed
    of an aborted transaction                          is removed
    a transaction marker                               stays until its transaction has no batch left, and from then on
                                                       until its delete horizon (`transactions.py`)

The first pass that keeps a tombstone, or a marker without a batch, sets its batch's delete horizon to now +
delete.retention.ms, so that a reader sees it if it is not further behind than that (KIP-534). A producer's last batch
stays as an empty batch, so that its sequence is known; of a producer that is known only by a marker, the marker's batch
stays. Fillers (`records.filler`) cover all other removed batches, one for each leader epoch in a run.

`steps` is a generator. It yields after each small piece of work, and the yielded value says how to continue. The caller
runs one piece when there is time. It closes the generator when `Log.cut_count` has changed, because the segments may be
gone.

Source: Kafka's Cleaner and MemoryRecords.filterTo; KIP-58, KIP-534.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from heirlog.env import File, Files
from heirlog.protocol.batch import HEADER_SIZE, BatchHeader, InvalidBatch, crc_matches, read_header
from heirlog.protocol.transaction_marker import read_marker
from heirlog.storage.cleaning.offset_map import OffsetMap
from heirlog.storage.cleaning.plan import LogToClean, groups
from heirlog.storage.cleaning.records import RecordSpan, empty_batch, filler, payload_of, spans, with_records
from heirlog.storage.cleaning.swap import CLEANED_SUFFIX
from heirlog.storage.cleaning.transactions import TransactionsOfPass
from heirlog.storage.flushing import OnFlushed
from heirlog.storage.log import Log
from heirlog.storage.segment import SEGMENT_SUFFIXES, Segment, segment_path

Wait: TypeAlias = Callable[[OnFlushed], None]
"""Starts a slow operation; it calls its argument with the result, and then the pass may continue."""
Steps: TypeAlias = Generator[Wait | None, None, None]
"""None: continue when there is time."""

_READ_BYTES = 128 * 1024
_WRITE_BYTES = 64 * 1024
_RECORDS_PER_STEP = 256
_MAX_FILLER_OFFSETS = 2**31 - 1


@dataclass(slots=True)
class CompactionResult:
    """The result of a pass, for the node's log."""

    mapped_to: int = 0
    keys: int = 0
    bytes_read: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    groups: int = 0
    groups_unchanged: int = 0


class Compaction:
    def __init__(
        self,
        files: Files,
        log: Log,
        plan: LogToClean,
        capacity: int,
        wall_ms: int,
        on_replaced: Callable[[Callable[[], None]], None],
    ) -> None:
        """`capacity`: of the offset map, in keys. `on_replaced` gets a function for each group that removes the old
        files; call it after file.delete.delay.ms.
        """
        self._files = files
        self._log = log
        self._plan = plan
        self._map = OffsetMap(capacity)
        self._is_full = False
        self._wall_ms = wall_ms
        self._on_replaced = on_replaced
        self._writer: _Writer | None = None
        self._transactions = TransactionsOfPass(())
        self.outcome = CompactionResult(mapped_to=plan.first_dirty_offset)

    def steps(self) -> Steps:
        """Raises InvalidBatch and DecompressionError if a batch is damaged, and OSError."""
        yield from self._learn()
        self.outcome.keys = len(self._map)
        yield from self._rewrite()
        self._log.first_dirty_offset = self.outcome.mapped_to
        while self._map.release_some():
            yield None

    # mapping

    def _learn(self) -> Steps:
        first_dirty = self._plan.first_dirty_offset
        transactions = TransactionsOfPass(self._log.aborted_transactions(first_dirty, self._plan.uncleanable_offset))
        for segment, end in self._segments_below(self._plan.uncleanable_offset):
            if end <= first_dirty:
                continue
            position = segment.position_of(first_dirty) if first_dirty > segment.base_offset else 0
            for step in self._batches(segment, position):
                if step is None:
                    yield None
                    continue
                header, batch = step
                if header.next_offset <= first_dirty:
                    continue
                if header.is_control:
                    transactions.end(header)
                elif not transactions.is_aborted(header):
                    yield from self._learn_batch(header, batch)
                    if self._is_full:
                        return
                self.outcome.mapped_to = header.next_offset
            self.outcome.mapped_to = end

    def _learn_batch(self, header: BatchHeader, batch: bytes) -> Steps:
        first_dirty, base_offset, put = self._plan.first_dirty_offset, header.base_offset, self._map.put
        for count, span in enumerate(spans(payload_of(batch, header), header), 1):
            if count % _RECORDS_PER_STEP == 0:
                yield None
            offset = base_offset + span.offset_delta
            if span.key is None or offset < first_dirty:
                continue
            if not put(span.key, offset):
                self._is_full = True
                return
            self.outcome.mapped_to = offset + 1

    # rewriting

    def _rewrite(self) -> Steps:
        log, outcome = self._log, self.outcome
        found = list(self._segments_below(outcome.mapped_to))
        end_of = {segment.base_offset: end for segment, end in found}
        segments = [segment for segment, _ in found]
        self._transactions = TransactionsOfPass(log.aborted_transactions(segments[0].base_offset, found[-1][1]))
        for group in groups(segments, found[-1][1], log.config.segment_bytes):
            outcome.groups += 1
            outcome.bytes_before += sum(segment.size for segment in group)
            yield from self._rewrite_group(group, end_of[group[-1].base_offset])

    def _rewrite_group(self, group: list[Segment], end_offset: int) -> Steps:
        writer = self._writer = _Writer(self._files, self._log, group[0].base_offset)
        for segment in group:
            for step in self._batches(segment, 0):
                if step is None:
                    yield None
                    continue
                header, batch = step
                kept = yield from self._judged(header, batch)
                if kept is None:
                    writer.removed(header)
                else:
                    writer.keep(header, *kept)
        writer.finish(end_offset)
        self.outcome.bytes_after += writer.segment.size
        if len(group) == 1 and not writer.has_changed:
            self.outcome.groups_unchanged += 1
            self.give_up()
            return
        indexes = writer.segment.write_indexes(CLEANED_SUFFIX)
        yield lambda resume: self._flush([writer.segment.log, *indexes], resume)
        for file in indexes:
            file.close()
        yield self._sync
        self._log.swaps.prepare(group, writer.segment)
        yield self._sync
        self._on_replaced(self._log.swaps.take_over())
        self._writer = None
        yield self._sync
        self._log.swaps.complete()
        yield self._sync

    def give_up(self) -> None:
        """Delete the segment that is being written. Raises OSError.

        Call this when the steps do not run to their end, also after they raised. The generator does not do it, because
        it is closed at any time by garbage collection."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.discard()

    def _judged(self, header: BatchHeader, batch: bytes) -> Generator[None, None, tuple[bytes, BatchHeader] | None]:
        """The remaining batch; None if nothing of it remains."""
        if header.is_filler:
            return None
        if header.is_control:
            return self._judged_marker(header, batch)
        is_aborted = self._transactions.is_aborted(header)
        if header.base_offset >= self.outcome.mapped_to and not is_aborted:
            return batch, header
        is_last = self._is_last_of_producer(header)
        if is_aborted or not header.record_count:
            return _emptied(header, batch) if is_last else None
        payload = payload_of(batch, header)
        kept: list[RecordSpan] = []
        has_tombstone = False
        for count, span in enumerate(spans(payload, header), 1):
            if count % _RECORDS_PER_STEP == 0:
                yield
            if self._stays(span, header):
                kept.append(span)
                has_tombstone = has_tombstone or not span.has_value
        if not kept:
            return empty_batch(header) if is_last else None
        horizon_ms = None
        if has_tombstone and header.delete_horizon_ms is None:
            horizon_ms = self._wall_ms + self._log.config.delete_retention_ms
        if len(kept) == header.record_count and horizon_ms is None:
            return batch, header
        return with_records(header, payload, kept, horizon_ms)

    def _judged_marker(self, header: BatchHeader, batch: bytes) -> tuple[bytes, BatchHeader] | None:
        is_last = self._is_last_of_producer(header)
        if not header.record_count:
            return (batch, header) if is_last else None
        stays, aborted = self._transactions.end(header)
        if stays or read_marker(batch, header) is None:
            if aborted is not None and self._writer is not None:
                self._writer.segment.index_aborted(aborted)
            return batch, header
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            horizon_ms = self._wall_ms + self._log.config.delete_retention_ms
            payload = payload_of(batch, header)
            return with_records(header, payload, list(spans(payload, header)), horizon_ms)
        if self._wall_ms < horizon_ms:
            return batch, header
        return _emptied(header, batch) if is_last else None

    def _stays(self, span: RecordSpan, header: BatchHeader) -> bool:
        offset = header.base_offset + span.offset_delta
        if offset >= self.outcome.mapped_to:
            return True
        if span.key is None or offset < self._map.get(span.key):
            return False
        horizon_ms = header.delete_horizon_ms
        return span.has_value or horizon_ms is None or self._wall_ms < horizon_ms

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        state = self._log.producers.producers.get(header.producer_id) if header.producer_id >= 0 else None
        if state is None:
            return False
        if state.batches:
            return state.batches[-1].last_offset == header.last_offset
        return header.is_control and state.epoch == header.producer_epoch

    # files

    def _segments_below(self, offset: int) -> Iterator[tuple[Segment, int]]:
        """Segments with records below `offset`, and their end offsets; never the active one."""
        segments = list(self._log.segments)
        for i, segment in enumerate(segments[:-1]):
            if segment.base_offset >= offset:
                return
            yield segment, segments[i + 1].base_offset

    def _batches(self, segment: Segment, position: int) -> Iterator[tuple[BatchHeader, bytes] | None]:
        """Header and bytes of each batch from a boundary on; None between pieces of work.

        Raises InvalidBatch: no record is removed from a log that cannot be read completely.
        """
        size = segment.size
        while position < size:
            chunk = segment.log.pread(_READ_BYTES, position)
            self.outcome.bytes_read += len(chunk)
            at = 0
            while at < len(chunk):
                header = read_header(chunk, at) if len(chunk) - at >= HEADER_SIZE else None
                if header is None or at + header.size > len(chunk):
                    break
                yield self._checked(segment, position + at, header, chunk[at : at + header.size])
                at += header.size
                yield None
            if at == 0:
                header = segment.header_at(position)
                batch = segment.log.pread(header.size, position)
                self.outcome.bytes_read += len(batch)
                yield self._checked(segment, position, header, batch)
                at = header.size
                yield None
            position += at

    def _checked(self, segment: Segment, position: int, header: BatchHeader, batch: bytes) -> tuple[BatchHeader, bytes]:
        """Damage that was copied into a new segment would count as what was written. No CRC covers a leader epoch."""
        has_crc = crc_matches(batch, 0, header)
        if not (has_crc and self._log.epochs.agrees(header)):
            wrong = "leader epoch" if has_crc else "CRC"
            raise InvalidBatch(f"the {wrong} of the batch at position {position} of {segment.log.path} does not match")
        return header, batch

    def _flush(self, files: list[File], resume: OnFlushed) -> None:
        left = len(files)
        first_error: OSError | None = None

        def done(error: OSError | None) -> None:
            nonlocal left, first_error
            left -= 1
            first_error = first_error or error
            if left == 0:
                resume(first_error)

        for file in files:
            self._files.flush(file, done)

    def _sync(self, resume: OnFlushed) -> None:
        self._files.sync_dir(self._log.dir_path, resume)


def _emptied(header: BatchHeader, batch: bytes) -> tuple[bytes, BatchHeader]:
    return empty_batch(header) if header.record_count else (batch, header)


class _Writer:
    """Writes the new segment of a group."""

    def __init__(self, files: Files, log: Log, base_offset: int) -> None:
        self._files = files
        self._log = log
        self._interval_bytes = log.config.index_interval_bytes
        self.segment = Segment.create(files, log.dir_path, base_offset, CLEANED_SUFFIX)
        self.has_changed = False
        """False while the result equals the input."""
        self._next_offset = base_offset
        self._epoch = -1
        self._runs: list[tuple[int, int, int]] = []
        """Ranges that fillers have to cover next: first offset, last offset, leader epoch."""
        self._waiting: list[bytes] = []
        self._headers: list[BatchHeader] = []
        self._waiting_bytes = 0

    def removed(self, header: BatchHeader) -> None:
        self._cover_gap(header.base_offset, header.leader_epoch)
        # a filler without an adjacent one is not changed
        if not header.is_filler or (self._runs and self._runs[-1][2] == header.leader_epoch):
            self.has_changed = True
        self._cover(header.base_offset, header.last_offset, header.leader_epoch)
        self._next_offset, self._epoch = header.next_offset, header.leader_epoch

    def keep(self, before: BatchHeader, batch: bytes, header: BatchHeader) -> None:
        self._cover_gap(header.base_offset, header.leader_epoch)
        self._write_fillers()
        if header is not before:
            self.has_changed = True
        self._write(batch, header)
        self._next_offset, self._epoch = header.next_offset, header.leader_epoch

    def finish(self, end_offset: int) -> None:
        self._cover_gap(end_offset, self._epoch)
        self._write_fillers()
        self._write_out()

    def _cover_gap(self, offset: int, epoch: int) -> None:
        """Cover a gap that Apache Kafka's cleaner left; its epoch comes from the epoch cache."""
        if offset > self._next_offset:
            self.has_changed = True
            self._cover(self._next_offset, offset - 1, epoch if self._epoch < 0 else self._epoch)

    def _cover(self, first: int, last: int, epoch: int) -> None:
        if self._runs:
            run_first, _, run_epoch = self._runs[-1]
            if run_epoch == epoch and last - run_first <= _MAX_FILLER_OFFSETS:
                self._runs[-1] = (run_first, last, epoch)
                return
        self._runs.append((first, last, epoch))

    def _write_fillers(self) -> None:
        for first, last, epoch in self._runs:
            self._write(*filler(first, last, epoch))
        self._runs.clear()

    def _write(self, batch: bytes, header: BatchHeader) -> None:
        self._waiting.append(batch)
        self._headers.append(header)
        self._waiting_bytes += len(batch)
        if self._waiting_bytes >= _WRITE_BYTES:
            self._write_out()

    def _write_out(self) -> None:
        if self._waiting:
            self.segment.append(b"".join(self._waiting), self._headers, self._interval_bytes)
        self._waiting, self._headers, self._waiting_bytes = [], [], 0

    def discard(self) -> None:
        """Delete the segment. The log's directory may have another name by now; then loading removes the files."""
        self.segment.close()
        for suffix in SEGMENT_SUFFIXES:
            path = segment_path(self._log.dir_path, self.segment.base_offset, suffix) + CLEANED_SUFFIX
            if self._files.exists(path):
                self._files.unlink(path)
