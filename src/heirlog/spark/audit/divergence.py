"""Where two replicas of a partition begin to differ, from the headers of batches in buckets whose digests differ.

    replica's batches of the buckets  --join on the base offset-->  equal, or the first offset that is not

    reference     the log that the fewest undamaged ones contradict: one leader epoch has one leader, which gives each
                  offset one batch, so two different ones of the same epoch cannot both be right, and two replicas that
                  agree have it from that leader. Of different epochs the metadata say which is right. Of several logs
                  the one that the metadata ranks highest, then the one from which the fewest others of its rank
                  differ, then the fewest of all

In the part of a compacted topic where the log cleaner has been, each replica keeps other records. What it did not
change has to be equal all the same: batches that still have all their records.

Only offsets that both logs cover are compared: one may start later (retention), end earlier (it lags), or have a gap
that is a finding of its own. Two batches are equal if place, leader epoch, CRC, size, timestamp and producer are. What
two different contents with the same of all these would mean is not considered: a CRC is no protection against a forger.

Source: T6 of docs/internals/simulation.md.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heirlog.spark.audit import headers as h
from heirlog.spark.audit.index_check import IndexFilesCheck
from heirlog.spark.audit.segment_scan import BUCKET_BITS, next_batch, walk_file, were_rewritten
from heirlog.spark.kernels import Longs

IDENTITY = ("last_offset_delta", "leader_epoch", "crc", "size", "max_timestamp", "producer_id")
NO_ROLE = 0
"""Rank of a log of which the metadata say nothing."""
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


def read_buckets(path: str, base_offset: int, buckets: Sequence[int], cleaned_to: int = 0) -> Iterator[Longs]:
    """The batches of a segment that begin in these buckets, as rows: base offset, then `IDENTITY`. Raises OSError.

    cleaned_to: below it only those that the log cleaner did not change.
    """
    wanted = np.array(sorted(buckets), np.int64)
    found: list[Longs] = []

    def batches(columns: Longs, piece: bytearray, origin: int) -> None:
        chosen = np.isin(columns[h.BASE_OFFSET] >> BUCKET_BITS, wanted)
        chosen &= (columns[h.BASE_OFFSET] >= cleaned_to) | ~were_rewritten(columns)
        if chosen.any():
            found.append(columns[list(_COLUMNS)][:, chosen])

    with open(path, "rb", buffering=0) as file:
        fd, size = file.fileno(), os.fstat(file.fileno()).st_size
        positions = IndexFilesCheck(path, base_offset).positions
        walk_file(fd, size, batches, lambda position, damaged: next_batch(fd, positions, position, size))
    yield from found


def compare(
    ranks: Mapping[int, int],
    batches: Mapping[int, Sequence[tuple[int, ...]]],
    ranges: Mapping[int, Sequence[Sequence[int]]],
    cleaned_to: int = 0,
) -> list[Difference]:
    """The first difference of each log from the reference.

    ranks: by the metadata; below zero: damaged. batches: of each log, of the same buckets: (base offset, ...identity),
    in any order. ranges: what each log covers. cleaned_to: the log cleaner may have removed batches below it.
    """
    by_offset = {log: {batch[0]: batch for batch in held} for log, held in batches.items()}

    def from_reference(reference: int) -> list[Difference]:
        others = (log for log in sorted(by_offset) if log != reference)
        found = (_first_difference(reference, log, by_offset, ranges, cleaned_to) for log in others)
        return [difference for difference in found if difference is not None]

    # a log that covers too little to differ from others would hide how those differ
    differences = {log: found for log in sorted(by_offset) if (found := from_reference(log))}

    def doubts(reference: int) -> tuple[int, ...]:
        found = differences[reference]
        contradicting = [each for each in found if _contradicts(each, ranks)]
        of_its_rank = [each for each in found if ranks[each.log] == ranks[reference]]
        return len(contradicting), -ranks[reference], len(of_its_rank), len(found), reference

    return differences[min(differences, key=doubts)] if differences else []


def _contradicts(difference: Difference, ranks: Mapping[int, int]) -> bool:
    """Whether the log speaks against the reference.

    One of another epoch may have a tail that no other replica has. As the reference it would hide how the others differ
    from each other behind that.
    """
    log, reference = ranks[difference.log], ranks[difference.reference]
    if difference.epoch == difference.reference_epoch:
        return log >= 0
    if log == reference == NO_ROLE:
        return difference.epoch > difference.reference_epoch
    return log > reference


def _first_difference(
    reference: int,
    log: int,
    batches: Mapping[int, Mapping[int, tuple[int, ...]]],
    ranges: Mapping[int, Sequence[Sequence[int]]],
    cleaned_to: int,
) -> Difference | None:
    expected, there = batches[reference], batches[log]
    for offset in sorted(expected.keys() | there.keys()):
        mine, right = there.get(offset), expected.get(offset)
        if offset < cleaned_to and (mine is None or right is None):
            continue
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
