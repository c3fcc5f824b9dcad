"""Where two replicas of a partition begin to differ, from the headers of batches in buckets whose digests differ.

    replica's batches of the buckets  --join on the base offset-->  equal, or the first offset that is not

    reference     one of the candidates, which the metadata does not tell apart: the one from which the fewest others
                  of them differ, and if that is equal, the fewest of all replicas

Only offsets that both logs cover are compared: one may start later (retention), end earlier (it lags), or have a gap
that is a finding of its own. Two batches are equal if place, leader epoch, CRC, size, timestamp and producer are. What
two different contents with the same of all these would mean is not considered: a CRC is no protection against a forger.

Source: T6 of docs/internals/simulation.md.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heirlog.spark.audit import headers as h
from heirlog.spark.audit.index_check import IndexFilesCheck
from heirlog.spark.audit.segment_scan import BUCKET_BITS, next_batch, walk_file
from heirlog.spark.kernels import Longs

IDENTITY = ("last_offset_delta", "leader_epoch", "crc", "size", "max_timestamp", "producer_id")
_COLUMNS = (h.BASE_OFFSET, h.LAST_OFFSET_DELTA, h.LEADER_EPOCH, h.CRC, h.SIZE, h.MAX_TIMESTAMP, h.PRODUCER_ID)
_EPOCH = IDENTITY.index("leader_epoch") + 1


class Difference(NamedTuple):
    """The first offset at which a log differs from the reference."""

    log: int
    reference: int
    offset: int
    epoch: int
    """Leader epoch there; -1: the log has no batch that begins there."""
    reference_epoch: int


def read_buckets(path: str, base_offset: int, buckets: Sequence[int]) -> Iterator[Longs]:
    """The batches of a segment that begin in these buckets, as rows: base offset, then `IDENTITY`. Raises OSError."""
    wanted = np.array(sorted(buckets), np.int64)
    found: list[Longs] = []

    def batches(columns: Longs, piece: bytearray, origin: int) -> None:
        chosen = np.isin(columns[h.BASE_OFFSET] >> BUCKET_BITS, wanted)
        if chosen.any():
            found.append(columns[list(_COLUMNS)][:, chosen])

    with open(path, "rb", buffering=0) as file:
        fd, size = file.fileno(), os.fstat(file.fileno()).st_size
        positions = IndexFilesCheck(path, base_offset).positions
        walk_file(fd, size, batches, lambda position, damaged: next_batch(fd, positions, position, size))
    yield from found


def compare(
    candidates: Sequence[int],
    batches: Mapping[int, Sequence[tuple[int, ...]]],
    ranges: Mapping[int, Sequence[Sequence[int]]],
) -> list[Difference]:
    """The first difference of each log from the reference.

    candidates: for the reference, the preferred one first. batches: of each log, of the same buckets: (base offset,
    ...identity), in any order. ranges: what each log covers.
    """
    by_offset = {log: {batch[0]: batch for batch in held} for log, held in batches.items()}
    here = [log for log in candidates if log in by_offset] or sorted(by_offset)

    def from_reference(reference: int, others: Iterable[int]) -> list[Difference]:
        found = (_first_difference(reference, log, by_offset, ranges) for log in others if log != reference)
        return [difference for difference in found if difference is not None]

    everyone = sorted(by_offset)
    reference = min(here, key=lambda log: (len(from_reference(log, here)), len(from_reference(log, everyone))))
    return from_reference(reference, everyone)


def _first_difference(
    reference: int,
    log: int,
    batches: Mapping[int, Mapping[int, tuple[int, ...]]],
    ranges: Mapping[int, Sequence[Sequence[int]]],
) -> Difference | None:
    expected, there = batches[reference], batches[log]
    for offset in sorted(expected.keys() | there.keys()):
        mine, right = there.get(offset), expected.get(offset)
        if mine != right and _covers(ranges[log], offset) and _covers(ranges[reference], offset):
            epochs = (-1 if batch is None else batch[_EPOCH] for batch in (mine, right))
            return Difference(log, reference, offset, *epochs)
    return None


def _covers(ranges: Sequence[Sequence[int]], offset: int) -> bool:
    at = bisect_right(ranges, offset, key=lambda each: each[0]) - 1
    return at >= 0 and offset < ranges[at][1]


def as_rows(log: int, batches: Longs) -> dict[str, Any]:
    """Columns of the table that `compare` gets."""
    names = ("base_offset", *IDENTITY)
    columns: dict[str, Any] = {name: batches[i] for i, name in enumerate(names)}
    columns["log"] = np.full(batches.shape[1], log, np.int64)
    return columns
