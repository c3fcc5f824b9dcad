"""The swaps of one log: the log cleaner replaces neighbouring segments by one that it has rewritten.

    prepare     the rewritten segment counts from now on, in case of a crash; reads still find the old ones
    take_over   reads find the rewritten segment. The old ones are kept for readers that have regions of them, until the
                caller removes them after file.delete.delay.ms
    complete    the rewritten segment gets its final names

`swap.py` has the files and the directory syncs between these steps. There is at most one swap at a time.

`settle` ends it early, before the log is truncated, its oldest segments are deleted, or it is closed: a later loading
would otherwise bring back records that are removed by then. `detach` ends it without changing a file, because the
directory is about to be renamed; loading completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heirlog.storage.cleaning.swap import Swap
from heirlog.storage.log_segments import LogSegments
from heirlog.storage.partition_directory import PartitionDirectory
from heirlog.storage.segment import Segment


class SegmentSwaps:
    __slots__ = ("_current", "_directory", "_replaced", "_segments")

    def __init__(self, directory: PartitionDirectory, segments: LogSegments) -> None:
        self._directory = directory
        self._segments = segments
        self._current: Swap | None = None
        self._replaced: list[Swap] = []
        """Swaps whose old files are not removed yet."""

    @property
    def is_idle(self) -> bool:
        """Whether no swap is between `prepare` and `complete`."""
        return self._current is None

    def prepare(self, old: Sequence[Segment], cleaned: Segment) -> None:
        """`cleaned`, durable under its `.cleaned` names, is to replace these neighbours. Raises OSError."""
        self._current = Swap(self._directory.files, self._directory.path, old, cleaned)

    def take_over(self) -> Callable[[], None]:
        """Let reads find the new segment. Call this after the directory was synced, and `complete` after another sync.

        Returns a function that removes the old files, to be called after file.delete.delay.ms. Raises OSError.
        """
        swap = self._current
        assert swap is not None
        swap.take_over()
        self._segments.replace(swap.old, swap.cleaned)
        self._replaced.append(swap)

        def remove() -> None:
            if swap in self._replaced:
                self._replaced.remove(swap)
                swap.remove_old()

        return remove

    def complete(self) -> None:
        """Give the new files their names. Raises OSError."""
        assert self._current is not None
        self._current.complete()
        self._current = None

    def settle(self) -> None:
        """End the current swap, if there is one, before segments are cut or removed. Raises OSError."""
        if self._current is not None:
            self._current.settle()
            self._current = None
            self._directory.changed()

    def detach(self) -> None:
        self._current = None

    def close(self) -> None:
        """Give back the old files that are not removed yet."""
        for swap in self._replaced:
            for segment in swap.old:
                segment.close()
        self._replaced = []
