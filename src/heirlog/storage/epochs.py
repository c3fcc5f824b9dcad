"""The start offset of each leader epoch in this log, which decides truncation after a change of leader.

    (epoch, start offset) ...   both strictly rising

`end_offset_for` answers a follower's question "at which offset does epoch e end in your log?":

    e is the latest epoch          (e, log end)
    e above the latest, negative,
      or nothing known             (-1, -1)
    e known, or between two        (largest known epoch <= e, start of the next higher one)
    e below the first known        (e, start of the first known epoch)

The file `leader-epoch-checkpoint` is written after memory changes, and no append waits for it. So after a crash it may
be older than the log, and recovery repairs it: entries at or above the log end are removed, and every scanned batch
enters its epoch again. `Log.flush` waits for the file before it moves the recovery point, since batches below that
point are not scanned.

So an epoch that a leader begins need not be in the file before the next flush: if it has no records recovery drops it,
and otherwise recovery finds it. This saves much time for a broker that becomes leader of thousands of partitions at
once.

Source: KIP-101, KIP-279, KIP-595 (diverging epoch); kafka-behaviour 4.5.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from heirlog.env import Files
from heirlog.protocol.batch import BatchHeader
from heirlog.storage.atomic import AtomicFile, OnDurable, read_file
from heirlog.storage.checkpoints import parse_checkpoint, render_checkpoint
from heirlog.storage.open_files import OpenFileLimit

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    __slots__ = ("_as_read", "_epochs", "_file", "_is_behind", "_on_written", "_starts", "latest")

    def __init__(
        self, files: Files, dir_path: str, on_written: OnDurable, open_files: OpenFileLimit | None = None
    ) -> None:
        """Read the file; an unreadable file counts as empty, because recovery and the leader fill it again.

        Nothing is written before `loaded`. Otherwise the next recovery, after a crash, would trust the incomplete
        result of this one.
        """
        self._file = AtomicFile(files, dir_path, LEADER_EPOCH_CHECKPOINT, open_files)
        self._on_written = on_written
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = UNDEFINED_EPOCH
        """The latest epoch; -1 if the log never had a leader."""
        self._is_behind = False
        """The file lacks an epoch that `begin` has entered."""
        content = read_file(files, f"{dir_path}/{LEADER_EPOCH_CHECKPOINT}")
        for fields in parse_checkpoint(content, 2) or []:
            self._enter(int(fields[0]), int(fields[1]))
        self._as_read: list[tuple[int, int]] | None = self.entries

    def loaded(self) -> None:
        """Recovery is done: from now on every change is written. Raises OSError."""
        changed = self._as_read != self.entries
        self._as_read = None
        if changed:
            self._write()

    @property
    def first_start(self) -> int:
        """Start offset of the first known epoch; -1 if there is none."""
        return self._starts[0] if self._starts else UNDEFINED_OFFSET

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def durable(self) -> bool:
        return not self._is_behind and self._file.durable

    def lacks_no_records(self, log_end_offset: int) -> bool:
        """Whether the file is durable, but for an epoch of which the log has no record: recovery would drop it too."""
        return self._file.durable and (not self._is_behind or self._starts[-1] >= log_end_offset)

    def when_durable(self, on_durable: OnDurable) -> None:
        """Only while not `durable`."""
        if self._is_behind:
            try:
                self._write()
            except OSError as error:
                on_durable(error)
                return
        self._file.when_durable(on_durable)

    def begin(self, epoch: int, log_end_offset: int) -> None:
        """This broker leads from this offset on. The file is written with the next flush or other change."""
        if not self._is_known(epoch, log_end_offset):
            self._enter(epoch, log_end_offset)
            self._is_behind = True

    def assign(self, epoch: int, start_offset: int) -> None:
        """Epoch `epoch` begins at `start_offset`; nothing happens if that is known. Raises OSError."""
        if not self._is_known(epoch, start_offset):
            self._enter(epoch, start_offset)
            self._write()

    def _is_known(self, epoch: int, start_offset: int) -> bool:
        return epoch == UNDEFINED_EPOCH or (epoch == self.latest and start_offset >= self._starts[-1])

    def _enter(self, epoch: int, start_offset: int) -> None:
        # entries that contradict the new one came from a leader whose records this log no longer has
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset), or (-1, -1): see the top of the module."""
        if epoch == UNDEFINED_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        i = bisect_right(self._epochs, epoch)
        return (self._epochs[i - 1] if i else epoch), self._starts[i]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch whose leader wrote `offset`; -1 below the first known."""
        starts = self._starts
        if starts and offset >= starts[-1]:
            return self._epochs[-1]
        i = bisect_right(starts, offset) - 1
        return self._epochs[i] if i >= 0 else UNDEFINED_EPOCH

    def start_above(self, epoch: int) -> int | None:
        """Where the first epoch above this one begins; None if there is none."""
        i = bisect_right(self._epochs, epoch)
        return self._starts[i] if i < len(self._epochs) else None

    def agrees(self, header: BatchHeader) -> bool:
        """Whether the batch is of the epoch in which its offsets were written, as far as that is known."""
        offset = header.base_offset
        return (
            not self._starts
            or offset < self._starts[0]
            or header.leader_epoch in (UNDEFINED_EPOCH, self.epoch_for_offset(offset))
        )

    def prepend(self, entries: Sequence[tuple[int, int]]) -> None:
        """Add entries before the first known one, in rising order. Raises OSError."""
        if not entries:
            return
        known = self.entries
        if known and known[0][0] == entries[-1][0]:
            known = known[1:]
        self._epochs = [epoch for epoch, _ in (*entries, *known)]
        self._starts = [start for _, start in (*entries, *known)]
        self._write()

    def truncate_from_end(self, end_offset: int) -> None:
        """The log ends at `end_offset` now."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            del self._starts[keep:]
            del self._epochs[keep:]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log starts at `start_offset` now; the epoch that contains it starts there."""
        last = bisect_right(self._starts, start_offset) - 1
        if last < 0 or (last == 0 and self._starts[0] == start_offset):
            return
        del self._starts[:last]
        del self._epochs[:last]
        self._starts[0] = start_offset
        self._write()

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._write()

    def close(self) -> None:
        self._file.close()

    def _write(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        if self._as_read is None:
            self._is_behind = False
            self._file.write(render_checkpoint(self.entries), self._on_written)
