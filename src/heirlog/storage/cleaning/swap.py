"""A rewritten segment takes the place of old ones, so that a crash at any point leaves a whole log.

    000.log.cleaned         being written; litter after a crash
       | flushed, directory synced, renamed
    000.log.swap            counts from now on: loading puts it into place          PREPARED
       | directory synced; the old files become .deleted, the log reads the new one
    000.log.swap            (old files gone from their names)                       TAKEN_OVER
       | directory synced, renamed
    000.log                                                                         DONE

Each arrow waits for the directory, so that no crash finds an old segment beside the new one. The indexes go first and
the log last: an index alone is litter, a log without one costs a rebuild. Old files stay open, and on disk as
`.deleted`, until file.delete.delay.ms has passed.

When the log is cut in between (`settle`): a swap that nobody reads yet is given up, one that is read already is put
into place at once; otherwise loading could bring back what was cut.

Source: Kafka's LocalLog.replaceSegments, LogLoader.completeSwapOperations.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from heirlog.env import Files
from heirlog.protocol.batch import InvalidBatch
from heirlog.storage.segment import Segment, segment_path

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"

_INDEXES_THEN_LOG = (".index", ".timeindex", ".log")


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
            files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
        self.state = SwapState.PREPARED

    def take_over(self) -> None:
        """Take the old files out of the way. Raises OSError."""
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
        """The log is about to be cut or closed. Raises OSError."""
        if self.state is SwapState.TAKEN_OVER:
            self.complete()
        elif self.state is SwapState.PREPARED:
            # the log first: from then on loading takes the rest for litter
            for suffix in reversed(_INDEXES_THEN_LOG):
                self._files.unlink(segment_path(self._dir_path, self.cleaned.base_offset, suffix) + SWAP_SUFFIX)
            self.state = SwapState.DONE

    def remove_old(self) -> None:
        """Close the old files and unlink what is left of them. Raises OSError."""
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


def complete_swaps(files: Files, dir_path: str) -> None:
    """When a log is loaded: finish what a crash interrupted. Raises OSError.

    What is renamed to `.swap` was durable before, so one that cannot be read was damaged later; it is dropped, and
    loading judges what is there without it.
    """
    for name in files.list(dir_path):
        stem = name.removesuffix(".log" + SWAP_SUFFIX)
        if stem == name or not stem.isdecimal():
            continue
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


def _end_of(files: Files, dir_path: str, base_offset: int) -> int | None:
    """Where a swapped-in segment ends; None if it is not whole."""
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
