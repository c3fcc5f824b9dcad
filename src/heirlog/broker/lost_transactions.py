"""Transactions that lost a part when a follower truncated what an election on a lossy basis gave up.

A log remembers the newest transaction of each producer. Its producers before and after the truncation show what was
lost:

    open after it, as before               "records": some records of the open transaction
    open after it, and it was ended        "marker": if the coordinator has completed that transaction, it hangs
    before it                              (`heirlog transactions find-hanging`)
    nothing open after it                  "transaction": the newest one, and maybe earlier ones of the producer

This is a statement about the log of this follower: the leader's is the same up to the end of the truncated one.
"""

from __future__ import annotations

from typing import NamedTuple

from heirlog.storage.producers import NO_COORDINATOR_EPOCH, NO_TRANSACTION, ProducerStateManager


class LostPart(NamedTuple):
    producer_id: int
    producer_epoch: int
    part: str
    start_offset: int
    """First offset of the open transaction; -1: none is open."""


class _Remembered(NamedTuple):
    epoch: int
    transaction_start: int
    coordinator_epoch: int
    last_timestamp: int
    last_offset: int

    @property
    def is_transactional(self) -> bool:
        return self.transaction_start != NO_TRANSACTION or self.coordinator_epoch != NO_COORDINATOR_EPOCH


Remembered = dict[int, _Remembered]


def remembered(producers: ProducerStateManager) -> Remembered:
    """The newest transaction of each producer."""
    return {
        producer_id: _Remembered(
            state.epoch,
            state.transaction_start,
            state.coordinator_epoch,
            state.last_timestamp,
            state.batches[-1].last_offset if state.batches else -1,
        )
        for producer_id, state in producers.producers.items()
    }


def lost_parts(before: Remembered, after: Remembered) -> list[LostPart]:
    """What the truncation between the two removed, by producer id."""
    return [
        _lost_part(producer_id, was, after.get(producer_id))
        for producer_id, was in sorted(before.items())
        if was.is_transactional and after.get(producer_id) != was
    ]


def _lost_part(producer_id: int, was: _Remembered, now: _Remembered | None) -> LostPart:
    start = NO_TRANSACTION if now is None else now.transaction_start
    if start == NO_TRANSACTION:
        part = "transaction"
    else:
        part = "records" if was.transaction_start == start else "marker"
    return LostPart(producer_id, was.epoch, part, start)
