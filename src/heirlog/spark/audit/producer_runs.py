"""The sequence numbers of idempotent producers, as runs without a break (KIP-98).

    producer 7, epoch 0:   sequences 0-99, 100-149   one run from 0 to 149
                           200-249                   a break: the next run

A break inside a log is a lost or doubled batch. Runs of consecutive segments are
joined later, since a producer's batches may be anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heirlog.protocol.batch import CONTROL, LAST_SEQUENCE
from heirlog.spark.audit import headers as h
from heirlog.spark.kernels import Longs


class Run(NamedTuple):
    producer_id: int
    producer_epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int


class Break(NamedTuple):
    """Two consecutive runs of a producer that do not join."""

    log: int
    """Number of the log in the inventory."""
    kind: str
    from_offset: int
    """After the last batch of the run before."""
    offset: int
    sentence: str


class ProducerRuns:
    """Of one segment, whose batches are passed in order."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._open: dict[int, int] = {}
        """Producer id → the index of its last run."""

    def batches(self, columns: Longs) -> None:
        has_sequence = (
            (columns[h.PRODUCER_ID] >= 0) & (columns[h.BASE_SEQUENCE] >= 0) & (columns[h.ATTRIBUTES] & CONTROL == 0)
        )
        if not has_sequence.any():
            return
        found = columns[:, has_sequence]
        found = found[:, np.argsort(found[h.PRODUCER_ID], kind="stable")]
        ids, epochs, first = found[h.PRODUCER_ID], found[h.PRODUCER_EPOCH], found[h.BASE_SEQUENCE]
        last = (first + found[h.LAST_OFFSET_DELTA]) & LAST_SEQUENCE
        continues = (ids[1:] == ids[:-1]) & (epochs[1:] == epochs[:-1]) & (first[1:] == (last[:-1] + 1) & LAST_SEQUENCE)
        starts = np.flatnonzero(np.concatenate(([True], ~continues)))
        ends = np.append(starts[1:], ids.size) - 1
        offsets, deltas = found[h.BASE_OFFSET], found[h.LAST_OFFSET_DELTA]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            self._add(
                Run(
                    int(ids[start]),
                    int(epochs[start]),
                    int(first[start]),
                    int(last[end]),
                    int(offsets[start]),
                    int(offsets[end] + deltas[end]),
                )
            )

    def _add(self, run: Run) -> None:
        at = self._open.get(run.producer_id)
        if at is not None and broken(self.runs[at], run) is None:
            before = self.runs[at]
            if before.producer_epoch == run.producer_epoch:
                self.runs[at] = before._replace(last_sequence=run.last_sequence, last_offset=run.last_offset)
                return
        self._open[run.producer_id] = len(self.runs)
        self.runs.append(run)


GAP = "sequence-gap"
REPEATED = "sequence-repeated"


def broken(before: Run, after: Run) -> tuple[str, str] | None:
    """What is wrong between two consecutive runs of one producer id, as (kind, sentence); None: nothing."""
    who = f"producer {after.producer_id}"
    if after.producer_epoch == before.producer_epoch:
        expected = (before.last_sequence + 1) & LAST_SEQUENCE
        if after.first_sequence == expected:
            return None
        ahead = (after.first_sequence - expected) & LAST_SEQUENCE
        if ahead <= LAST_SEQUENCE // 2:
            return GAP, (
                f"{who}, epoch {after.producer_epoch}: sequences {expected} to "
                f"{(after.first_sequence - 1) & LAST_SEQUENCE} are missing before offset {after.first_offset}"
            )
        return REPEATED, (
            f"{who}, epoch {after.producer_epoch}: the batch at offset {after.first_offset} repeats sequence "
            f"{after.first_sequence}; sequence {before.last_sequence} was written before it"
        )
    if after.producer_epoch < before.producer_epoch:
        return REPEATED, (
            f"{who} wrote at offset {after.first_offset} with epoch {after.producer_epoch}, after a batch of epoch "
            f"{before.producer_epoch}"
        )
    if after.first_sequence:
        return GAP, (
            f"{who}, epoch {after.producer_epoch}: sequences 0 to {after.first_sequence - 1} are missing before offset "
            f"{after.first_offset}"
        )
    return None
