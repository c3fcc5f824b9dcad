"""What a log loses: at its end by truncation, at its start by retention, within by compaction.

Truncation cuts at a batch boundary; epochs, producers, snapshots and indexes follow, and it lowers the recovery point
before it cuts: a point above the end would let recovery trust what is written there next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from heirlog.storage.cleaning.swap import Swap
from heirlog.storage.errors import OffsetOutOfRange
from heirlog.storage.log_files import LogFiles
from heirlog.storage.producers import ProducerStateManager, remove_snapshots
from heirlog.storage.recovery import at_once, drop
from heirlog.storage.retention import count_deletable
from heirlog.storage.segment import Segment


class CutLog(LogFiles):
    """A log's files and how they grow less."""

    def truncate_to(self, offset: int) -> None:
        """Forget everything from the batch that holds `offset` on. At or above the log end no record goes.

        Raises OSError; recovery repairs what is left half done.
        """
        if offset >= self.log_end_offset:
            # a leader that appended nothing has an epoch that begins at its end and that nobody else knows: kept, it
            # would diverge from the next leader for ever
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        if offset <= self.log_start_offset:
            self.truncate_fully_and_start_at(max(offset, 0))
            return
        keep = bisect_right(self._bases, offset)
        segment = self._segments[keep - 1]
        # a batch lies in one segment, so that of the offset never begins before this segment
        position = segment.position_of(offset)
        cut_at = segment.header_at(position).base_offset
        if cut_at < self.log_start_offset:
            self.truncate_fully_and_start_at(self.log_start_offset)
            return
        self._before_cut(cut_at)
        self._lower_recovery_point(cut_at)
        self.epochs.truncate_from_end(cut_at)
        self._drop_segments(keep)
        segment.truncate_to(position, cut_at)
        self._set_segments(self._segments)
        self.log_end_offset = cut_at
        at_once(self._rebuild_producers(cut_at, trust_absence=False))
        self._directory_dirty = True
        self.flush(self._background_done)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Begin again, empty, at `offset`. Raises OSError."""
        self._before_cut(0)
        self._lower_recovery_point(offset)
        self.epochs.clear()
        self._drop_segments(0)
        self._disposal.hurry()
        remove_snapshots(self._files, self.dir_path, lambda _: True)
        self.producers = ProducerStateManager()
        self._set_segments([Segment.create(self._files, self.dir_path, offset)])
        self.log_start_offset = self.log_end_offset = self.recovery_point = self._flush_requested = offset
        self._directory_dirty = True
        self.flush(self._background_done)

    def _before_cut(self, first_dirty_at_most: int) -> None:
        """Segments are about to be cut or to go: the log cleaner's swap must not bring them back."""
        self.first_dirty_offset = min(self.first_dirty_offset, first_dirty_at_most)
        self.cut_count += 1
        self._settle_swap()

    def _drop_segments(self, first: int) -> None:
        if len(self._segments) > first:
            drop(self._segments, first)
            self._directory_dirty = True

    def _lower_recovery_point(self, offset: int) -> None:
        """Before the cut: a point above the end would let recovery trust what is written there next."""
        self._flush_requested = min(self._flush_requested, offset)
        for pending in self._flushes:
            pending.target = min(pending.target, offset)
        if offset < self.recovery_point:
            self.recovery_point = offset
            self._listener.on_truncated()

    def increment_log_start(self, offset: int) -> None:
        """Records below `offset` are no longer readable; their segments go with the next retention pass.

        Nothing happens below the current start. Raises OffsetOutOfRange above the log end, and OSError.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(str(self), offset, self.log_start_offset, self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            if (topic_id := self.topic_id) is not None:
                self._listener.on_start_moved((topic_id, self.partition))

    def delete_old_segments(self, wall_ms: int, high_watermark: int) -> int:
        """Delete what retention.ms, retention.bytes or the log start offset no longer keep; how many segments.

        Only whole segments below the high watermark; the active one only after a roll. Raises OSError.
        """
        count = count_deletable(
            self._segments, self.config, wall_ms, high_watermark, self.log_start_offset, self.log_end_offset
        )
        if count == len(self._segments):
            self.roll()
        if not count:
            return 0
        self._before_cut(self.first_dirty_offset)
        gone, kept = self._segments[:count], self._segments[count:]
        self._set_segments(kept)
        self.increment_log_start(max(self.log_start_offset, kept[0].base_offset))
        self._disposal.dispose(gone, kept[0].base_offset)
        return count

    # compaction: `cleaning/compaction.py` rewrites segments, these put the result into place, see `cleaning/swap.py`

    def prepare_swap(self, old: list[Segment], cleaned: Segment) -> None:
        """`cleaned`, durable under its `.cleaned` names, is to replace these neighbours. Raises OSError."""
        self._swap = Swap(self._files, self.dir_path, old, cleaned)

    def take_over_swap(self) -> Callable[[], None]:
        """From now on reads find the new segment. To be called after the directory was synced, as is the next one.

        Returns what removes the old files, to be called after file.delete.delay.ms. Raises OSError.
        """
        swap = self._swap
        assert swap is not None
        swap.take_over()
        at = self._segments.index(swap.old[0])
        kept = self._segments
        self._set_segments([*kept[:at], swap.cleaned, *kept[at + len(swap.old) :]])
        self._replaced.append(swap)

        def remove() -> None:
            if swap in self._replaced:
                self._replaced.remove(swap)
                swap.remove_old()

        return remove

    def complete_swap(self) -> None:
        """Give the new files their names. Raises OSError."""
        assert self._swap is not None
        self._swap.complete()
        self._swap = None
