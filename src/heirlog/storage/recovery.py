"""Opening a log after any kind of stop.

Clean (the directory's `.kafka_cleanshutdown` said so): files are trusted; a missing or inconsistent index is rebuilt.

Unclean: everything below the recovery point was flushed, the rest may be whole, torn or gone. From the segment that
holds the recovery point on, every batch is read and its CRC checked:

    torn, wrong CRC, leader epoch going back,
    not the offset that follows (no CRC covers it)                 the file is cut there, later segments are dropped
    the next segment does not begin where this one ended           it and all later ones are dropped

Indexes and epochs of what was scanned are made again from the batches. Segments before the recovery point are not read,
but each must end where the next one begins, in the epoch that the epoch cache says. That covers what a stale recovery
point or an undone unlink could leave behind: without it a tail that a truncation had removed could come back behind
newer records, or under the name of another epoch.
A compacted log is contiguous too: empty batches cover what the log cleaner removed (`cleaning/`). What it was doing
when the broker stopped is finished, or forgotten, before anything is read.

Nothing here is flushed: a crash during recovery finds the same recovery point and does it again.

Loading is a generator that yields after each slice of work: a broker that is registered reads a long log between its
heartbeats. Where nothing else is to be done meanwhile, `at_once` runs it through.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from heirlog.env import Files
from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.cleaning.swap import complete_swaps
from heirlog.storage.config import LogConfig
from heirlog.storage.epochs import LeaderEpochCache
from heirlog.storage.producers import ProducerStateManager, read_newest_snapshot, remove_snapshots
from heirlog.storage.segment import Segment

_INDEX_SUFFIXES = (".index", ".timeindex")
_LITTER_SUFFIXES = (".deleted", ".cleaned", ".swap")
SLICE_BYTES = 8 << 20
"""Checked without a pause: some milliseconds of work."""
_BATCH_WORK_BYTES = 4096
"""What looking at a batch costs at least, however small it is."""

Result = TypeVar("Result")
Slices: TypeAlias = Generator[None, None, Result]


def at_once(slices: Slices[Result]) -> Result:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result


class Loaded(NamedTuple):
    segments: list[Segment]
    """At least one; the last is the active one."""
    log_start_offset: int
    log_end_offset: int
    scanned_from: int
    """First offset whose batch was read; the log end after a clean stop."""
    cut_bytes: int
    """Of segments: torn, damaged, or behind what was."""


def load_segments(
    files: Files,
    dir_path: str,
    config: LogConfig,
    epochs: LeaderEpochCache,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
) -> Slices[Loaded]:
    """Raises OSError."""
    segments = [Segment.open(files, dir_path, base) for base in _tidy(files, dir_path)]
    if not segments:
        segments = [Segment.create(files, dir_path, log_start_offset)]
    found_bytes = sum(segment.size for segment in segments)
    log_end_offset = _open_trusted(segments) if clean else None
    scanned_from = log_end_offset
    if log_end_offset is None or scanned_from is None:
        scanned_from, log_end_offset = yield from _recover(segments, config, epochs, recovery_point)
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    if log_end_offset < log_start_offset:
        # records below the start were deleted on request; fewer than that survived
        drop(segments, 0)
        segments.append(Segment.create(files, dir_path, log_start_offset))
        log_end_offset = scanned_from = log_start_offset
    # an epoch that begins at the end is one whose leader has not written yet
    epochs.truncate_from_end(log_end_offset + 1)
    epochs.truncate_from_start(log_start_offset)
    _complete_epochs(segments, epochs, log_start_offset, log_end_offset)
    epochs.loaded()
    cut_bytes = found_bytes - sum(segment.size for segment in segments)
    return Loaded(segments, log_start_offset, log_end_offset, scanned_from, cut_bytes)


def _tidy(files: Files, dir_path: str) -> list[int]:
    """Finish what the log cleaner began, remove what nobody refers to; the base offsets of the segments."""
    complete_swaps(files, dir_path)
    names = files.list(dir_path)
    bases = [int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdecimal()]
    known = {f"{base:020d}" for base in bases}
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        orphan = dot + suffix in _INDEX_SUFFIXES and stem not in known
        if orphan or name.endswith(_LITTER_SUFFIXES):
            files.unlink(f"{dir_path}/{name}")
    return sorted(bases)


def _open_trusted(segments: list[Segment]) -> int | None:
    """The log end; None if the files are not what a clean stop leaves."""
    try:
        for segment in segments[:-1]:
            segment.load_summary()
            segment.retire()
        active = segments[-1]
        active.load_summary()
        last = active.last_header()
        if active.torn_bytes():
            return None
    except InvalidBatch:
        return None
    return active.base_offset if last is None else last.next_offset


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
    """Does it look like a segment that was closed at `offset`, and do the epochs know of its last batch?"""
    try:
        segment.load_summary()
        last = segment.last_header()
    except InvalidBatch:
        return False
    if last is None or last.next_offset != offset or segment.torn_bytes():
        return False
    if epochs.entries and epochs.epoch_for_offset(last.last_offset) != last.leader_epoch:
        return False
    segment.retire()
    return True


def _scan(
    segment: Segment, config: LogConfig, epochs: LeaderEpochCache, leader_epoch: int
) -> Slices[tuple[int, int, bool]]:
    """(end offset, last leader epoch, whether the file was whole): indexes the segment and cuts off what is torn."""
    segment.start_indexes()
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
    whole = end == segment.size
    if not whole:
        segment.log.truncate(end)
    return expected, leader_epoch, whole


def _complete_epochs(
    segments: Sequence[Segment], epochs: LeaderEpochCache, log_start_offset: int, log_end_offset: int
) -> None:
    """Learn from the batches where the file knows nothing: it was lost, or it knew of a log start that is forgotten."""
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
    """Unlink from the newest on, so that a crash in between leaves no hole."""
    while len(segments) > first:
        segment = segments.pop()
        segment.unlink()
        segment.close()


def rebuild_producers(
    files: Files, dir_path: str, segments: Sequence[Segment], loaded_from: int, end_offset: int, *, trust_absence: bool
) -> Slices[ProducerStateManager]:
    """The state at `end_offset`, from the newest usable snapshot at or below `loaded_from` and the batches after it.

    Snapshots above are removed: what they summarise is gone or was scanned. `trust_absence`: after a clean stop no
    snapshot means that there was no state (the log of an older version has none), and the log is not read for it.
    """
    remove_snapshots(files, dir_path, lambda offset: offset > loaded_from)
    newest = read_newest_snapshot(files, dir_path, loaded_from)
    if newest is None and trust_absence:
        return ProducerStateManager()
    start, states = newest or (segments[0].base_offset, ProducerStateManager())
    work_bytes = 0
    for i, segment in enumerate(segments):
        upper = segments[i + 1].base_offset if i + 1 < len(segments) else end_offset
        if upper <= start:
            continue
        begin = segment.position_of(start) if start > segment.base_offset else 0
        for _, header in segment.headers_from(begin):
            if header.base_offset >= start:
                states.update(header)
            work_bytes += _BATCH_WORK_BYTES
            if work_bytes >= SLICE_BYTES:
                work_bytes = 0
                yield
    return states
