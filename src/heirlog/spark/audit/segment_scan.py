"""One segment file, read once in bounded memory: what is wrong in it, and what comparisons of it need.

    read a piece -> walk its headers (`headers.py`) -> every check on whole columns of numbers -> the next piece

A batch that cannot be one (framing) ends the walk; it continues at the next position that the offset index knows and
where a batch with a valid CRC begins. What an unclean stop may leave is no finding: the last segment may end inside a
batch or in zeros.

*Digest*: replicas hold the same batches at the same offsets, so each bucket of 4096 offsets gets one number from the
header and CRC of each batch that begins in it. The CRC covers the content, and this scan has checked it. Digests
of parts of a bucket are combined by xor, which does not notice a batch that is there twice: the count does.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from heirlog.protocol.batch import DELETE_HORIZON, HEADER_SIZE, InvalidBatch, crc_matches, read_header
from heirlog.protocol.checksum import crc32c
from heirlog.spark.audit import headers as h
from heirlog.spark.audit.index_check import IndexFilesCheck
from heirlog.spark.audit.producer_runs import ProducerRuns
from heirlog.spark.kernels import Longs

BUCKET_BITS = 12
"""A bucket is 2^12 offsets: a few batches of many records, or at most 4096 of one record."""
PIECE_BYTES = 4 << 20
_ROWS = 1 << 15
_CRC_START = 21
_SAME_KIND_MAX = 5
"""Findings of one kind in one segment: a segment that is wrong everywhere says so once."""
_NO_OFFSET = -1


class Unit(NamedTuple):
    """One segment to scan, and what the driver knows of its log."""

    log: int
    """Number of the log in the inventory."""
    path: str
    base_offset: int
    is_last: bool
    """The newest segment of its log."""
    trusted_to: int
    """Below this offset everything was flushed, or the node stopped cleanly."""
    is_closed: bool
    """Its index files are complete: the next start uses them."""
    log_start_offset: int
    epochs: list[list[int]] | None
    """Entries (epoch, start offset) of leader-epoch-checkpoint; None: it cannot be read."""


def walk_file(
    fd: int,
    size: int,
    on_batches: Callable[[Longs, bytearray, int], None],
    on_stop: Callable[[int, bool], int | None],
) -> None:
    """Read a segment of `size` bytes piece by piece. Raises OSError.

    on_batches: called with the headers of whole batches, the piece that they are in, and its position in the file.
    on_stop: called with a position where no whole batch is, and whether what is there cannot even be a header; returns
        where to continue.
    """
    piece = bytearray(min(PIECE_BYTES, max(size, 1)))
    out: Longs = np.empty((h.FIELDS, _ROWS), np.int64)
    position = 0
    while position < size:
        held = os.preadv(fd, [memoryview(piece)[: size - position]], position)
        end, damaged = _walk_piece(piece, held, position, out, on_batches)
        needed = read_header(piece).size if held >= HEADER_SIZE and not end and not damaged else 0
        if held == 0:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        if damaged or (end < held and position + held >= size) or needed > size - position:
            resumed = on_stop(position + end, damaged)
            if resumed is None:
                return
            position = resumed
        elif needed > len(piece):
            piece = bytearray(needed)
        else:
            position += end


def _walk_piece(
    piece: bytearray, held: int, origin: int, out: Longs, on_batches: Callable[[Longs, bytearray, int], None]
) -> tuple[int, bool]:
    """Where the whole batches at the start of the piece end, and whether damage follows."""
    data = np.frombuffer(piece, np.uint8)
    data.flags.writeable = False
    end = 0
    while True:
        count, end, damaged = h.walk_headers(data, end, held, out)
        if count:
            on_batches(out[:, :count], piece, origin)
        if count < _ROWS:
            return end, damaged


def next_batch(fd: int, positions: Longs, after: int, size: int) -> int | None:
    """The first of the indexed positions behind byte `after` where a batch with a valid CRC begins. Raises OSError."""
    for candidate in positions[positions > after].tolist():
        try:
            header = read_header(os.pread(fd, HEADER_SIZE, candidate))
        except InvalidBatch:
            continue
        if candidate + header.size <= size and crc_matches(os.pread(fd, header.size, candidate), 0, header):
            return int(candidate)
    return None


class SegmentScan:
    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._expected = unit.base_offset
        self._epoch = -1
        self._before: tuple[int, int, int] | None = None
        """Base offset, CRC and size of the batch before."""
        self._indexes = IndexFilesCheck(unit.path, unit.base_offset) if unit.is_closed else None
        self._positions = np.zeros(0, np.int64) if self._indexes is None else self._indexes.positions
        self._producers = ProducerRuns()
        self._findings: list[dict[str, Any]] = []
        self._kinds: dict[str, int] = {}
        self._gaps: list[dict[str, Any]] = []
        self._buckets: dict[int, list[int]] = {}
        self._bytes = self._batches = self._records = 0
        self._first_offset = self._first_epoch = self._last_epoch = -1
        self._rewritten_to = self._max_timestamp = -1
        self._ends_damaged = self._has_damaged = False
        entries = np.array(unit.epochs or np.zeros((0, 2)), np.int64).reshape(-1, 2)
        self._epochs: Longs = entries[:, 0]
        self._epoch_starts: Longs = entries[:, 1]

    def run(self) -> dict[str, Any]:
        """The row of this segment in the table `segments`."""
        try:
            with open(self._unit.path, "rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                self._walk(file.fileno(), size)
                if self._indexes is not None and not self._ends_damaged and size:
                    self._indexes.ended(size, knows_timestamps=not self._has_damaged)
        except OSError as error:
            self._found("unreadable", self._expected, f"{self._name} cannot be read: {error.strerror}")
            self._ends_damaged = True
        if self._indexes is not None and self._batches:
            for path, sentence in self._indexes.wrong.items():
                offset = self._expected if path in self._indexes.beyond else self._unit.base_offset
                self._found("index-wrong", offset, sentence)
        return self._row()

    @property
    def _name(self) -> str:
        return os.path.basename(self._unit.path)

    # reading

    def _walk(self, fd: int, size: int) -> None:
        walk_file(fd, size, self._check, lambda position, damaged: self._stopped(fd, position, size, damaged))

    def _stopped(self, fd: int, position: int, size: int, damaged: bool) -> int | None:
        """No whole batch is at `position`. Where to continue, if anywhere."""
        offset = max(self._expected, self._unit.base_offset)
        if self._is_torn_tail(fd, position, size, damaged, offset):
            return None
        what = "is not a record batch" if damaged else f"is a batch of which only {size - position} bytes are there"
        resumed = next_batch(fd, self._positions, position, size)
        lost = "the rest of the segment cannot be read"
        if resumed is not None:
            header = read_header(os.pread(fd, HEADER_SIZE, resumed))
            lost = f"the next readable batch is at byte {resumed}, offset {header.base_offset}"
            if header.base_offset > offset:
                self._gaps.append({"start": offset, "end": header.base_offset, "reported": True})
            self._expected = _NO_OFFSET
        else:
            self._ends_damaged = True
        self._found("framing", offset, f"{self._name}: what is at byte {position}, offset {offset}, {what}; {lost}")
        return resumed

    def _is_torn_tail(self, fd: int, position: int, size: int, damaged: bool, offset: int) -> bool:
        """An append that an unclean stop has interrupted, or space that was allocated and not used."""
        if not self._unit.is_last or offset < self._unit.trusted_to:
            return False
        if not damaged:
            return True
        while position < size:
            piece = os.pread(fd, PIECE_BYTES, position)
            if not piece or piece.count(0) != len(piece):
                return False
            position += len(piece)
        return True

    # checks, each on columns of numbers

    def _check(self, columns: Longs, piece: bytearray, origin: int) -> None:
        base, last = columns[h.BASE_OFFSET], columns[h.BASE_OFFSET] + columns[h.LAST_OFFSET_DELTA]
        damaged = self._check_crcs(columns, piece, base, last)
        self._check_order(columns, base, last)
        self._check_epochs(columns[h.LEADER_EPOCH], base, last)
        counts = np.where(damaged, last - base + 1, columns[h.RECORD_COUNT])
        timestamps = np.where((counts > 0) & ~damaged, columns[h.MAX_TIMESTAMP], -1)
        if self._indexes is not None:
            self._indexes.batches(columns[h.POSITION] + origin, last, timestamps)
        self._producers.batches(columns[:, ~damaged] if damaged.any() else columns)
        self._add_to_buckets(columns, base)
        rewritten = ~damaged & were_rewritten(columns)
        if rewritten.any():
            self._rewritten_to = max(self._rewritten_to, int(last[rewritten].max()) + 1)
        self._batches += base.size
        self._records += int(counts.sum())
        self._bytes += int(columns[h.SIZE].sum())
        self._max_timestamp = max(self._max_timestamp, int(timestamps.max()))
        if self._first_offset < 0:
            self._first_offset, self._first_epoch = int(base[0]), int(columns[h.LEADER_EPOCH, 0])
        self._last_epoch = int(columns[h.LEADER_EPOCH, -1])
        self._before = (int(base[-1]), int(columns[h.CRC, -1]), int(columns[h.SIZE, -1]))
        self._expected = int(last[-1]) + 1

    def _check_crcs(self, columns: Longs, piece: bytearray, base: Longs, last: Longs) -> NDArray[np.bool_]:
        """Which batches are damaged: what their headers say is not believed, and their offsets count as missing.

        `last` is corrected: a damaged batch ends where the next one begins.
        """
        view = memoryview(piece)
        starts = columns[h.POSITION].tolist()
        ends = (columns[h.POSITION] + columns[h.SIZE]).tolist()
        computed = [crc32c(view[start + _CRC_START : end]) for start, end in zip(starts, ends, strict=True)]
        damaged: NDArray[np.bool_] = columns[h.CRC] != np.array(computed, np.int64)
        for at in np.flatnonzero(damaged).tolist():
            if at + 1 < base.size and base[at + 1] > base[at]:
                last[at] = base[at + 1] - 1
            start, end = int(base[at]), int(last[at]) + 1
            sentence = f"{self._name}: the batch of offsets {start} to {end - 1} fails its CRC"
            self._found("batch-damaged", start, sentence)
            self._gaps.append({"start": start, "end": end, "reported": True})
        self._has_damaged = self._has_damaged or bool(damaged.any())
        return damaged

    def _check_order(self, columns: Longs, base: Longs, last: Longs) -> None:
        first = base[0] if self._expected == _NO_OFFSET else self._expected
        expected = np.concatenate(([first], last[:-1] + 1))
        for at in np.flatnonzero(base > expected).tolist():
            self._gaps.append({"start": int(expected[at]), "end": int(base[at]), "reported": False})
        for at in np.flatnonzero(base < expected).tolist():
            now = (int(base[at]), int(columns[h.CRC, at]), int(columns[h.SIZE, at]))
            before = self._before
            if at:
                before = (int(base[at - 1]), int(columns[h.CRC, at - 1]), int(columns[h.SIZE, at - 1]))
            if now == before:
                self._found("batch-doubled", now[0], f"{self._name}: the batch at offset {now[0]} is there twice")
            else:
                sentence = f"{self._name}: a batch at offset {now[0]} follows where offset {expected[at]} was expected"
                self._found("offsets-go-back", now[0], sentence)

    def _check_epochs(self, epochs: Longs, base: Longs, last: Longs) -> None:
        before = np.concatenate(([self._epoch], epochs[:-1]))
        # one wrong epoch is one finding: the batches behind it are compared with their own neighbours
        for at in np.flatnonzero((epochs < before) & (epochs >= 0)).tolist():
            sentence = (
                f"{self._name}: the batch at offset {base[at]} is of leader epoch {epochs[at]}, the one before of"
            )
            self._found("epoch-goes-back", int(base[at]), f"{sentence} {before[at]}")
        self._epoch = int(epochs[-1])
        if not self._epochs.size:
            return
        start = self._unit.log_start_offset
        known_first, known_last = self._known(np.maximum(base, start)), self._known(last)
        wrong = np.flatnonzero(
            ((known_first != epochs) | (known_last != epochs))
            & (epochs >= 0)
            & (last >= start)
            & (last < self._unit.trusted_to)
        )
        if wrong.size:
            at = int(wrong[0])
            known = known_first[at] if known_first[at] != epochs[at] else known_last[at]
            says = f"says {known}" if known >= 0 else "knows no epoch there"
            self._found(
                "leader-epochs-wrong",
                int(base[at]),
                f"the batch of offsets {base[at]} to {last[at]} is of leader epoch {epochs[at]}; "
                f"leader-epoch-checkpoint {says}",
            )

    def _known(self, offsets: Longs) -> Longs:
        """The epochs of these offsets by leader-epoch-checkpoint; -1: none."""
        at = np.searchsorted(self._epoch_starts, offsets, side="right") - 1
        return np.where(at >= 0, self._epochs[at], -1)

    def _add_to_buckets(self, columns: Longs, base: Longs) -> None:
        buckets = base >> BUCKET_BITS
        starts = np.concatenate(([0], np.flatnonzero(np.diff(buckets)) + 1))
        digests = np.bitwise_xor.reduceat(digests_of(columns), starts)
        counts = np.diff(np.append(starts, base.size))
        for bucket, count, digest in zip(buckets[starts].tolist(), counts.tolist(), digests.tolist(), strict=True):
            known = self._buckets.setdefault(bucket, [0, 0])
            known[0] += count
            known[1] ^= digest

    def _found(self, kind: str, offset: int, sentence: str) -> None:
        seen = self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if seen <= _SAME_KIND_MAX:
            self._findings.append({"kind": kind, "offset": offset, "sentence": sentence})

    def _row(self) -> dict[str, Any]:
        unit = self._unit
        for kind, seen in self._kinds.items():
            if seen > _SAME_KIND_MAX:
                sentence = f"{self._name}: {seen - _SAME_KIND_MAX} more of the kind {kind} are not listed"
                self._findings.append({"kind": kind, "offset": _NO_OFFSET, "sentence": sentence})
        return {
            "log": unit.log,
            "file": unit.path,
            "base_offset": unit.base_offset,
            "bytes": self._bytes,
            "batches": self._batches,
            "records": self._records,
            "first_offset": self._first_offset,
            "end_offset": max(self._expected, unit.base_offset),
            "first_epoch": self._first_epoch,
            "last_epoch": self._last_epoch,
            "max_timestamp_ms": self._max_timestamp,
            "rewritten_to": self._rewritten_to,
            "ends_damaged": self._ends_damaged,
            "gaps": self._gaps,
            "findings": self._findings,
            "buckets": [{"bucket": b, "batches": n, "digest": d} for b, (n, d) in self._buckets.items()],
            "producers": [run._asdict() for run in self._producers.runs],
        }


def were_rewritten(columns: Longs) -> NDArray[np.bool_]:
    """Which batches the log cleaner has changed: they hold fewer records than offsets, or have a delete horizon."""
    changed: NDArray[np.bool_] = columns[h.RECORD_COUNT] != columns[h.LAST_OFFSET_DELTA] + 1
    changed |= columns[h.ATTRIBUTES] & DELETE_HORIZON != 0
    return changed


def digests_of(columns: Longs) -> Longs:
    """One number per batch, from its place, its header and the CRC of its content."""
    value = np.zeros(columns.shape[1], np.uint64)
    for field in (h.BASE_OFFSET, h.LAST_OFFSET_DELTA, h.LEADER_EPOCH, h.CRC, h.SIZE, h.MAX_TIMESTAMP, h.PRODUCER_ID):
        value = _mixed(value ^ columns[field].view(np.uint64))
    return cast(Longs, value.view(np.int64))


def _mixed(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64's finalizer: each bit of the input changes half of the output."""
    value = (value + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
