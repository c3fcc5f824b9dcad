"""One log, batch by batch, and what says something about its batches: indexes, leader epochs, producer snapshots.

Recovery trusts what was flushed and reads only the rest (`storage/recovery.py`). Here everything is read once, from the
oldest segment to the newest, as recovery left it; what it would keep although it is damaged is found here alone.
"""

from __future__ import annotations

from typing import TypeVar

from heirlog.cli.offline.findings import Report, Severity
from heirlog.cli.offline.overlay import OverlayFiles
from heirlog.protocol.batch import BatchHeader
from heirlog.storage.atomic import read_file
from heirlog.storage.checkpoints import parse_checkpoint
from heirlog.storage.epochs import LEADER_EPOCH_CHECKPOINT, UNDEFINED_EPOCH
from heirlog.storage.index import OffsetIndex, TimeIndex, read_offset_index, read_time_index
from heirlog.storage.log import Log
from heirlog.storage.producers import ProducerStateManager, snapshot_offsets, snapshot_path
from heirlog.storage.segment import Segment, segment_path
from heirlog.storage.transaction_index import TRANSACTION_INDEX_SUFFIX, decode

Index = TypeVar("Index", OffsetIndex, TimeIndex)

REBUILT = "it is rebuilt from the log"
NOT_ITS_INDEX = "this is not the index of its segment"
READERS_FIND_OUT = (
    "nothing: it was flushed long ago and is not read again. The first reader that finds it makes the broker take this "
    "log directory offline, unless no other replica is in the ISR: then readers get CORRUPT_MESSAGE"
)


class LogCheck:
    """Of one open log. `disk` shows the files as they are, `log` as recovery left them."""

    def __init__(self, report: Report, disk: OverlayFiles, log: Log, *, clean: bool) -> None:
        """clean: the stop before promised that everything is in order; otherwise repairs are part of a start."""
        self._clean = clean
        self._report = report
        self._disk = disk
        self._log = log
        self._epoch = UNDEFINED_EPOCH
        self._expected = -1

    def run(self) -> None:
        for segment in self._log.segments:
            self._check_segment(segment)
            self._report.segments += 1
            self._report.bytes += segment.size
        self._check_epochs()
        self._check_producer_snapshots()

    def _check_segment(self, segment: Segment) -> None:
        path = segment_path(segment.dir_path, segment.base_offset, ".log")
        trusted = self._clean or segment.base_offset < self._log.scanned_from
        if not trusted:
            self._report.bytes_to_scan += segment.size
        indexes = IndexCheck(self._report, self._disk, segment, trusted=trusted)
        if 0 <= self._expected != segment.base_offset:
            self._gap(path, segment.base_offset)
        end = 0
        for position, header in segment.scan():
            self._check_batch(path, position, header)
            indexes.batch(position, header)
            self._expected, end = header.next_offset, position + header.size
        if end != segment.size:
            self._report.damage(
                "batch-damaged",
                path,
                f"the batch at byte {end}, offset {max(self._expected, segment.base_offset)}, is torn or fails its CRC",
                READERS_FIND_OUT,
                **self._where(),
                position=end,
                offset=max(self._expected, segment.base_offset),
            )
            # the following bytes cannot be distinguished from garbage; the next segment is checked on its own
            self._expected = -1
        else:
            indexes.done()

    def _check_batch(self, path: str, position: int, header: BatchHeader) -> None:
        if 0 <= self._expected < header.base_offset:
            self._gap(path, header.base_offset)
        elif header.base_offset < self._expected:
            self._report.damage(
                "offsets-go-back",
                path,
                f"the batch at byte {position} begins at offset {header.base_offset}, below {self._expected}",
                READERS_FIND_OUT,
                **self._where(),
            )
        known = self._log.epochs.epoch_for_offset(max(header.base_offset, self._log.log_start_offset))
        if header.leader_epoch < self._epoch or (header.leader_epoch != known and header.leader_epoch >= 0):
            self._report.damage(
                "epoch-wrong",
                path,
                f"the batch at byte {position}, offset {header.base_offset}, is of leader epoch {header.leader_epoch}; "
                f"the one before it of {self._epoch}, {LEADER_EPOCH_CHECKPOINT} says {known}",
                "nothing: followers may truncate at the wrong place",
                **self._where(),
                offset=header.base_offset,
            )
        self._epoch = max(self._epoch, header.leader_epoch)

    def _gap(self, path: str, offset: int) -> None:
        self._report.damage(
            "offsets-missing",
            path,
            f"offsets {self._expected} to {offset - 1} are missing",
            "nothing: readers continue after the gap",
            **self._where(),
            first_offset=self._expected,
            last_offset=offset - 1,
        )

    def _where(self) -> dict[str, object]:
        return {"topic": self._log.topic, "partition": self._log.partition}

    def _check_epochs(self) -> None:
        path = f"{self._log.dir_path}/{LEADER_EPOCH_CHECKPOINT}"
        content = read_file(self._disk, path)
        found = parse_checkpoint(content, 2)
        if content is not None and found is None:
            self._report.damage("leader-epochs-damaged", path, "the file is not a leader epoch checkpoint", REBUILT)
            return
        entries = [(int(epoch), int(start)) for epoch, start in found or []]
        if entries != self._log.epochs.entries:
            self._report.add(
                Severity.DAMAGE if self._clean else Severity.NOTE,
                "leader-epochs-repaired",
                path,
                f"it says {entries}, the log says {self._log.epochs.entries}",
                "the log is used",
            )

    def _check_producer_snapshots(self) -> None:
        for offset in snapshot_offsets(self._disk, self._log.dir_path):
            path = snapshot_path(self._log.dir_path, offset)
            data = read_file(self._disk, path)
            if data is None or ProducerStateManager.decode(data) is None:
                self._report.damage(
                    "producer-snapshot-damaged",
                    path,
                    "the file is torn or fails its CRC",
                    "it is ignored in favour of an older one, and more of the log is read",
                )


class IndexCheck:
    """Checks both index files of a segment against its batches, which are passed in order."""

    def __init__(self, report: Report, disk: OverlayFiles, segment: Segment, *, trusted: bool) -> None:
        """trusted: recovery reads the files; otherwise it makes them again, whatever they say."""
        self._report = report
        self._severity = Severity.DAMAGE if trusted else Severity.NOTE
        self._segment = segment
        self._offset_path = segment_path(segment.dir_path, segment.base_offset, ".index")
        self._time_path = segment_path(segment.dir_path, segment.base_offset, ".timeindex")
        base = segment.base_offset
        self._offsets = self._open(disk, self._offset_path, self._read_offsets(disk, base)) or OffsetIndex(base)
        self._times = self._open(disk, self._time_path, read_time_index(disk, self._time_path, base)) or TimeIndex(base)
        self._offset_at = self._time_at = 0
        self._wrong: dict[str, str] = {}
        self._check_transaction_index(disk)
        self._largest = -1
        """Timestamp of the batches so far."""

    def _read_offsets(self, disk: OverlayFiles, base: int) -> OffsetIndex | None:
        return read_offset_index(disk, self._offset_path, base, max(self._segment.size, 1))

    def _check_transaction_index(self, disk: OverlayFiles) -> None:
        path = segment_path(self._segment.dir_path, self._segment.base_offset, TRANSACTION_INDEX_SUFFIX)
        data = read_file(disk, path)
        if data is not None and decode(data, self._segment.base_offset) is None:
            self._report.add(self._severity, "index-damaged", path, NOT_ITS_INDEX, REBUILT)

    def _open(self, disk: OverlayFiles, path: str, index: Index | None) -> Index | None:
        there = disk.exists(path)
        # that of a segment in use is written when the log is closed, unless there is nothing to index
        if index is None and (there or (self._severity is Severity.DAMAGE and self._segment.size)):
            self._report.add(
                self._severity,
                "index-damaged" if there else "index-missing",
                path,
                NOT_ITS_INDEX if there else "the index is missing",
                REBUILT,
            )
        return index

    def batch(self, position: int, header: BatchHeader) -> None:
        index, at = self._offsets, self._offset_at
        if at < len(index) and index.positions[at] <= position:
            last_offset = index.base_offset + index.relative_offsets[at]
            # Kafka's followers name the last offset of several batches there: too large does no harm
            if index.positions[at] != position or last_offset < header.last_offset:
                self._note(self._offset_path, f"entry {at} names offset {last_offset} at byte {index.positions[at]}")
            self._offset_at = at + 1
        times = self._times
        while self._time_at < len(times) and times.base_offset + times.relative_offsets[self._time_at] <= (
            header.last_offset
        ):
            if self._largest > times.timestamps[self._time_at]:
                self._note(self._time_path, f"entry {self._time_at} is smaller than a timestamp before it")
            self._time_at += 1
        if header.record_count:
            self._largest = max(self._largest, header.max_timestamp)

    def done(self) -> None:
        if self._offset_at < len(self._offsets):
            self._note(self._offset_path, f"entry {self._offset_at} points past the last batch")
        if self._times.timestamps and self._times.timestamps[-1] > self._largest:
            self._note(self._time_path, "its last entry is larger than every timestamp")
        for path, what in self._wrong.items():
            self._report.add(
                self._severity,
                "index-wrong",
                path,
                f"{what}, which does not fit the segment",
                REBUILT
                if self._severity is Severity.NOTE
                else "nothing: the index looks complete. Remove it to have it rebuilt",
            )

    def _note(self, path: str, what: str) -> None:
        self._wrong.setdefault(path, what)
