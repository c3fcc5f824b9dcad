"""State batches: ranges of offsets whose records have the same state and delivery count.

A stored state is a list of them, ordered and without overlaps. New batches are laid over it:

    stored    [10 ........ 19] available, 1          start offset 12
    new            [13 .. 15] acknowledged, 1
    combined  [12][13 .. 15][16 .. 19]

Where two say something of an offset, the higher delivery count counts, then the higher state: a count never falls, and
a final state is higher than "available". Offsets below the start offset are dropped. Neighbours that say the same
become one batch, or the list would grow with every acknowledgement.

Source: KIP-932; KAFKA-19954 (an overlap must not lose the part that only one batch has).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias


class StateBatch(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_state: int
    """0 available, 2 acknowledged, 4 archived."""
    delivery_count: int


StateBatches: TypeAlias = tuple[StateBatch, ...]


def combined(stored: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> StateBatches:
    """The batches from the start offset on. `new` may overlap `stored`, and itself."""
    waiting = sorted((each for each in (*stored, *new) if each.last_offset >= start_offset), reverse=True)
    open_batches: list[tuple[int, int, int]] = []
    """Of those that have begun: the one that counts is first."""
    found: list[StateBatch] = []
    at = start_offset
    while waiting or open_batches:
        if not open_batches:
            at = max(at, waiting[-1].first_offset)
        while waiting and waiting[-1].first_offset <= at:
            batch = waiting.pop()
            heappush(open_batches, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
        count, state, last = open_batches[0]
        if last < at:
            heappop(open_batches)
            continue
        until = min(last, waiting[-1].first_offset - 1) if waiting else last
        _add(found, StateBatch(at, until, -state, -count))
        at = until + 1
    return tuple(found)


def _add(found: list[StateBatch], batch: StateBatch) -> None:
    if found and found[-1].last_offset + 1 == batch.first_offset and found[-1][2:] == batch[2:]:
        found[-1] = found[-1]._replace(last_offset=batch.last_offset)
    else:
        found.append(batch)


def are_well_formed(batches: Sequence[StateBatch]) -> bool:
    return all(0 <= each.first_offset <= each.last_offset for each in batches)
