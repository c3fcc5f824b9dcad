"""Opening a log after any kind of stop.

Clean (the directory's `.kafka_cleanshutdown` said so): files are trusted if each segment ends where the next one
begins, and the last one with a whole batch; otherwise they are read as after an unclean stop. A missing or inconsistent
index is rebuilt.

Unclean: everything below the recovery point was flushed; the rest may be complete, incomplete or missing. From the
segment that holds the recovery point on, every batch is read and its CRC checked:

    incomplete, wrong CRC, leader epoch going back,
    not the offset that follows (no CRC covers it)                 the file is cut there, later segments are dropped
    the next segment does not begin where this one ended           it and all later ones are dropped

Indexes and epochs of scanned batches are rebuilt; indexes of aborted transactions together with the producers, whose
state they need. Segments before the recovery point are not read, but each must end
where the next one begins, in the epoch of the epoch cache. This detects what an old recovery point or an undone unlink
could leave: otherwise a tail that a truncation had removed could come back after newer records, or in another epoch.
A compacted log is contiguous too: empty batches cover the records that the log cleaner removed (`cleaning/`). Work of
the cleaner that the stop interrupted is finished, or dropped, before anything is read.

Nothing is flushed here: after a crash during recovery the recovery point is the same, and recovery runs again.

Loading is a generator that yields after each slice of work, so that a registered broker can read a long log between its
heartbeats. If there is no other work meanwhile, `at_once` runs it to its end.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from heirlog.env import Files
from heirlog.protocol.batch import BatchHeader, InvalidBatch
from heirlog.protocol.transaction_marker import read_marker
from heirlog.storage.cleaning.swap import complete_swaps
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.producers import ProducerStateManager, read_newest_snapshot, remove_snapshots, snapshot_offsets
from heirlog.storage.segment import SEGMENT_SUFFIXES, Segment
from heirlog.storage.transaction_index import TRANSACTION_INDEX_SUFFIX

_INDEX_SUFFIXES = SEGMENT_SUFFIXES[1:]
_LEFTOVER_SUFFIXES = (".deleted", ".cleaned", ".swap")
SLICE_BYTES = 8 << 20
"""Bytes checked without a pause: some milliseconds of work."""
_BATCH_WORK_BYTES = 4096
"""Minimum cost of a batch, however small it is."""

Result = TypeVar("Result")
Slices: TypeAlias = Generator[None, None, Result]


def at_once(slices: Slices[Result]) -> Result:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result


class LastStop(NamedTuple):
    """What the checkpoints of a log directory say about a log that is opened. The default trusts nothing."""

    clean: bool = False
    """The last incarnation closed the log after its last append."""
    recovery_point: int = 0
    """Every record below this offset was flushed."""
    log_start_offset: int = 0
    """Records below this offset were deleted, on request or by retention."""
    flushed: bool = False
    """Only if `clean`: everything in the log's directory was flushed, too."""


CLOSED = LastStop(clean=True)
"""For a log that this incarnation has just created, or checked and closed."""


class Loaded(NamedTuple):
    segments: list[Segment]
    """At least one; the last one is the active segment."""
    log_start_offset: int
    log_end_offset: int
    scanned_from: int
    """Offset of the first batch that was read; the log end after a clean stop."""
    cut_bytes: int
    """Bytes removed from segments: incomplete, damaged, or after such a batch."""


def load_segments(
    files: Files,
    dir_path: str,
    config: LogConfig,
    epochs: LeaderEpochCache,
    last_stop: LastStop,
) -> Slices[Loaded]:
    """Raises OSError."""
    clean, recovery_point, log_start_offset, _ = last_stop
    bases, with_transaction_index = _tidy(files, dir_path)
    segments = [Segment.open(files, dir_path, base, base in with_transaction_index) for base in bases]
    if not segments:
        segments = [Segment.create(files, dir_path, log_start_offset)]
    found_bytes = sum(segment.size for segment in segments)
    log_end_offset = _open_trusted(segments, epochs) if clean else None
    scanned_from = log_end_offset
    if log_end_offset is None or scanned_from is None:
        scanned_from, log_end_offset = yield from _recover(segments, config, epochs, recovery_point)
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    if log_end_offset < log_start_offset:
        # all remaining records are below the log start, and were deleted on request
        drop(segments, 0)
        segments.append(Segment.create(files, dir_path, log_start_offset))
        log_end_offset = scanned_from = log_start_offset
    # an epoch that begins at the log end has no records yet, and stays
    epochs.truncate_from_end(log_end_offset + 1)
    epochs.truncate_from_start(log_start_offset)
    _complete_epochs(segments, epochs, log_start_offset, log_end_offset)
    epochs.loaded()
    cut_bytes = found_bytes - sum(segment.size for segment in segments)
    return Loaded(segments, log_start_offset, log_end_offset, scanned_from, cut_bytes)


def has_leftovers(files: Files, dir_path: str) -> bool:
    """Whether `load_segments` will rename or remove files that the log cleaner, or retention, has left."""
    return any(name.endswith(_LEFTOVER_SUFFIXES) for name in files.list(dir_path))


def _tidy(files: Files, dir_path: str) -> tuple[list[int], set[int]]:
    """Finish the log cleaner's work and remove unused files.

    Returns the base offsets of the segments, and of those with an index of aborted transactions.
    """
    names = files.list(dir_path)
    if complete_swaps(files, dir_path, names):
        names = files.list(dir_path)
    bases = [int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdecimal()]
    known = {f"{base:020d}" for base in bases}
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        orphan = dot + suffix in _INDEX_SUFFIXES and stem not in known
        if orphan or name.endswith(_LEFTOVER_SUFFIXES):
            files.unlink(f"{dir_path}/{name}")
    indexed = {name for name in names if name.endswith(TRANSACTION_INDEX_SUFFIX)}
    return sorted(bases), {base for base in bases if indexed and f"{base:020d}{TRANSACTION_INDEX_SUFFIX}" in indexed}


def _open_trusted(segments: list[Segment], epochs: LeaderEpochCache) -> int | None:
    """The log end; None if the files are not as a clean stop leaves them."""
    try:
        for segment, following in pairwise(segments):
            if not _ends_at(segment, following.base_offset, epochs):
                return None
        active = segments[-1]
        active.load_summary()
        last = active.last_header()
        end_offset = active.base_offset if last is None else last.next_offset
        # an earlier start may have cut the log, and ended before it wrote the index
        if active.torn_bytes() or active.aborts_from(end_offset):
            return None
    except InvalidBatch:
        return None
    return end_offset


def _recover(
    segments: list[Segment], config: LogConfig, epochs: LeaderEpochCache, recovery_point: int
) -> Slices[tuple[int, int]]:
    """(first scanned offset, log end)"""
    first = _first_to_scan(segments, epochs, recovery_point)
    scanned_from = expected = segments[first].base_offset
    epochs.truncate_from_end(scanned_from)
    leader_epoch = epochs.latest
    for i in range(first, len(segments)):
        segment = segments[i]
        if segment.base_offset != expected:
            drop(segments, i)
            break
        expected, leader_epoch, whole = yield from _scan(segment, config, epochs, leader_epoch)
        if not whole:
            drop(segments, i + 1)
            break
    return scanned_from, expected


def _first_to_scan(segments: Sequence[Segment], epochs: LeaderEpochCache, recovery_point: int) -> int:
    for i, (segment, following) in enumerate(pairwise(segments)):
        if following.base_offset > recovery_point or not _ends_at(segment, following.base_offset, epochs):
            return i
    return len(segments) - 1


def _ends_at(segment: Segment, offset: int, epochs: LeaderEpochCache) -> bool:
    """Whether the segment was closed at `offset`, and the epoch cache has the epoch of its last batch."""
    try:
        segment.load_summary()
        last = segment.last_header()
    except InvalidBatch:
        return False
    if last is None or last.next_offset != offset or segment.torn_bytes() or segment.aborts_from(offset):
        return False
    if epochs.entries and epochs.epoch_for_offset(last.last_offset) != last.leader_epoch:
        return False
    segment.retire()
    return True


def _scan(
    segment: Segment, config: LogConfig, epochs: LeaderEpochCache, leader_epoch: int
) -> Slices[tuple[int, int, bool]]:
    """Index the segment and cut incomplete batches; yields (end offset, last leader epoch, was complete)."""
    segment.start_indexes()
    segment.start_transaction_index()
    expected, end = segment.base_offset, 0
    work_bytes = 0
    for position, header in segment.scan():
        if header.base_offset != expected or header.leader_epoch < leader_epoch or not segment.can_hold(header):
            break
        segment.index_batch(header, position, config.index_interval_bytes)
        if header.leader_epoch > leader_epoch:
            leader_epoch = header.leader_epoch
            epochs.assign(leader_epoch, header.base_offset)
        expected, end = header.next_offset, position + header.size
        work_bytes += max(header.size, _BATCH_WORK_BYTES)
        if work_bytes >= SLICE_BYTES:
            work_bytes = 0
            yield
    segment.unchecked.all_checked()
    whole = end == segment.size
    if not whole:
        segment.log.truncate(end)
    return expected, leader_epoch, whole


def _complete_epochs(
    segments: Sequence[Segment], epochs: LeaderEpochCache, log_start_offset: int, log_end_offset: int
) -> None:
    """Fill missing epochs from the batches: the file was lost, or described a higher log start."""
    known_from = epochs.first_start if epochs.entries else log_end_offset
    found: list[tuple[int, int]] = []
    for segment in segments:
        if log_start_offset >= known_from or segment.base_offset >= known_from:
            break
        for _, header in segment.headers_from(0):
            if header.base_offset >= known_from:
                break
            if header.next_offset > log_start_offset and (not found or header.leader_epoch > found[-1][0]):
                found.append((header.leader_epoch, max(header.base_offset, log_start_offset)))
    epochs.prepend([entry for entry in found if entry[0] >= 0])


def drop(segments: list[Segment], first: int) -> None:
    """Unlink segments, the newest first, so that a crash in between leaves no gap."""
    while len(segments) > first:
        segment = segments.pop()
        segment.unlink()
        segment.close()


def rebuild_producers(
    files: Files, dir_path: str, segments: Sequence[Segment], loaded_from: int, end_offset: int, *, trust_absence: bool
) -> Slices[ProducerStateManager]:
    """The state at `end_offset`, from the newest usable snapshot at or below `loaded_from` and the batches after it.

    Newer snapshots are removed: their records are gone or were scanned. Segments from `loaded_from` on get their
    aborted transactions. `trust_absence`: after a clean stop a missing snapshot means that there was no state (an older
    version wrote none), and the log is not read for it. A damaged one is not missing. A snapshot from before the first
    segment is removed, too: of what came after it, markers among it, nothing is left to read, so a transaction that it
    calls open might stay open.
    """
    newest = None
    if snapshot_offsets(files, dir_path):
        remove_snapshots(files, dir_path, lambda offset: not segments[0].base_offset <= offset <= loaded_from)
        newest = read_newest_snapshot(files, dir_path, loaded_from)
    elif trust_absence:
        return ProducerStateManager()
    start, states = newest or (segments[0].base_offset, ProducerStateManager())
    work_bytes = 0
    for i, segment in enumerate(segments):
        upper = segments[i + 1].base_offset if i + 1 < len(segments) else end_offset
        if upper <= start:
            continue
        begin = segment.position_of(start) if start > segment.base_offset else 0
        for position, header in segment.headers_from(begin):
            if header.base_offset >= start:
                _replay(segment, position, header, states, index_aborted=segment.base_offset >= loaded_from)
            work_bytes += _BATCH_WORK_BYTES
            if work_bytes >= SLICE_BYTES:
                work_bytes = 0
                yield
    return states


def _replay(
    segment: Segment, position: int, header: BatchHeader, states: ProducerStateManager, *, index_aborted: bool
) -> None:
    if header.producer_id < 0:
        return
    if not header.is_control:
        states.update(header)
        return
    marker = read_marker(segment.read_batch(position), header)
    aborted = None if marker is None else states.end_transaction(marker, header)
    if aborted is not None and index_aborted:
        segment.index_aborted(aborted)
