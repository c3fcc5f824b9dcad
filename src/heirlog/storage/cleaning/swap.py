"""Replaces old segments by a rewritten one, so that a crash at any point leaves a complete log.

    000.log.cleaned         being written; removed after a crash
       | flushed, directory synced, renamed
    000.log.swap            counts from now on: loading puts it into place          PREPARED
       | directory synced; the old files become .deleted, the log reads the new one
    000.log.swap            (old files gone from their names)                       TAKEN_OVER
       | directory synced, renamed
    000.log                                                                         DONE

Each arrow waits for the sync of the directory, so that no crash leaves an old segment together with the new one.
Indexes are renamed first and the log last: an index alone is removed, and a log without one needs a rebuild. That of
aborted transactions is not rebuilt; but a cleaned segment has no records of them, so that readers do not need it. Old
files stay open, and on disk as `.deleted`, until file.delete.delay.ms has passed.

If the log is truncated meanwhile (`settle`), a swap that is not read yet is abandoned, and one that is read already is
completed at once. Otherwise loading could bring back truncated records.

Source: Kafka's LocalLog.replaceSegments, LogLoader.completeSwapOperations.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from heirlog.env import Files
from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.segment import SEGMENT_SUFFIXES, Segment, segment_path

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"

_INDEXES_THEN_LOG = (*SEGMENT_SUFFIXES[1:], SEGMENT_SUFFIXES[0])


class SwapState(Enum):
    PREPARED = "prepared"
    TAKEN_OVER = "taken over"
    DONE = "done"


class Swap:
    def __init__(self, files: Files, dir_path: str, old: Sequence[Segment], cleaned: Segment) -> None:
        """`cleaned`: durable under its `.cleaned` names, begins where the first of `old` begins. Raises OSError."""
        self._files = files
        self._dir_path = dir_path
        self.old = list(old)
        self.cleaned = cleaned
        for suffix in _INDEXES_THEN_LOG:
            path = segment_path(dir_path, cleaned.base_offset, suffix)
            if files.exists(path + CLEANED_SUFFIX):
                files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        self.state = SwapState.PREPARED

    def take_over(self) -> None:
        """Rename the old files to `.deleted`. Raises OSError."""
        assert self.state is SwapState.PREPARED
        for segment in self.old:
            for suffix in _INDEXES_THEN_LOG:
                path = segment_path(self._dir_path, segment.base_offset, suffix)
                if self._files.exists(path):
                    self._files.rename(path, path + DELETED_SUFFIX)
        self.state = SwapState.TAKEN_OVER

    def complete(self) -> None:
        """Give the new files their names. Raises OSError."""
        assert self.state is SwapState.TAKEN_OVER
        _put_into_place(self._files, self._dir_path, self.cleaned.base_offset)
        self.cleaned.retire()
        self.state = SwapState.DONE

    def settle(self) -> None:
        """The log is about to be truncated or closed. Raises OSError."""
        if self.state is SwapState.TAKEN_OVER:
            self.complete()
        elif self.state is SwapState.PREPARED:
            # the log first: then loading removes the rest
            for suffix in reversed(_INDEXES_THEN_LOG):
                path = segment_path(self._dir_path, self.cleaned.base_offset, suffix) + SWAP_SUFFIX
                if self._files.exists(path):
                    self._files.unlink(path)
            self.state = SwapState.DONE

    def remove_old(self) -> None:
        """Close the old files and unlink them. Raises OSError."""
        for segment in self.old:
            segment.close()
            for suffix in _INDEXES_THEN_LOG:
                path = segment_path(self._dir_path, segment.base_offset, suffix) + DELETED_SUFFIX
                if self._files.exists(path):
                    self._files.unlink(path)


def _put_into_place(files: Files, dir_path: str, base_offset: int) -> None:
    for suffix in _INDEXES_THEN_LOG:
        path = segment_path(dir_path, base_offset, suffix)
        if files.exists(path + SWAP_SUFFIX):
            files.rename(path + SWAP_SUFFIX, path)


def complete_swaps(files: Files, dir_path: str, names: Sequence[str]) -> bool:
    """Finish a swap that a crash interrupted, when a log is loaded; whether there was one. Raises OSError.

    names: those in the directory.

    A file was durable before it was renamed to `.swap`, so one that cannot be read was damaged later. It is dropped,
    and loading checks the remaining files.
    """
    found = False
    for name in names:
        stem = name.removesuffix(".log" + SWAP_SUFFIX)
        if stem == name or not stem.isdecimal():
            continue
        found = True
        base_offset = int(stem)
        end_offset = _end_of(files, dir_path, base_offset)
        if end_offset is None:
            files.unlink(f"{dir_path}/{name}")
            continue
        for other in files.list(dir_path):
            other_stem, dot, suffix = other.rpartition(".")
            is_segment = dot + suffix in _INDEXES_THEN_LOG and other_stem.isdecimal()
            if is_segment and base_offset <= int(other_stem) < end_offset:
                files.unlink(f"{dir_path}/{other}")
        _put_into_place(files, dir_path, base_offset)
    return found


def _end_of(files: Files, dir_path: str, base_offset: int) -> int | None:
    """End offset of a swapped-in segment; None if it is not complete."""
    path = segment_path(dir_path, base_offset, ".log") + SWAP_SUFFIX
    segment = Segment(files, dir_path, base_offset, files.open(path), 0)
    end_offset, end = None, 0
    try:
        for position, header in segment.headers_from(0):
            end_offset, end = header.next_offset, position + header.size
    except InvalidBatch:
        return None
    finally:
        segment.close()
    return end_offset if end == segment.size else None
