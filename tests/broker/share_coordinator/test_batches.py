"""State batches: what is said of each offset, compared with a table that is kept offset by offset."""

from __future__ import annotations

import itertools
import random

import pytest

from heirlog.broker.share_coordinator.batches import StateBatch, are_well_formed, combined


def batch(first: int, last: int, state: int = 0, count: int = 1) -> StateBatch:
    return StateBatch(first, last, state, count)


@pytest.mark.parametrize(
    ("stored", "new", "start", "expected"),
    [
        ([], [batch(5, 9)], 0, [batch(5, 9)]),
        ([batch(5, 9)], [], 7, [batch(7, 9)]),
        ([batch(5, 9)], [], 10, []),
        ([batch(0, 9)], [batch(10, 19)], 0, [batch(0, 19)]),
        ([batch(0, 9)], [batch(11, 19)], 0, [batch(0, 9), batch(11, 19)]),
        ([batch(0, 9)], [batch(10, 19, count=2)], 0, [batch(0, 9), batch(10, 19, count=2)]),
        ([batch(0, 9)], [batch(3, 5, 2)], 0, [batch(0, 2), batch(3, 5, 2), batch(6, 9)]),
        ([batch(3, 5, 2)], [batch(0, 9)], 0, [batch(0, 2), batch(3, 5, 2), batch(6, 9)]),
        ([batch(0, 9, 4, 1)], [batch(0, 9, 0, 2)], 0, [batch(0, 9, 0, 2)]),
        ([batch(0, 5)], [batch(3, 9, 2)], 0, [batch(0, 2), batch(3, 9, 2)]),
        ([batch(0, 9)], [batch(0, 4, 2), batch(5, 9, 2)], 0, [batch(0, 9, 2)]),
    ],
)
def test_new_batches_are_laid_over_the_stored_ones(
    stored: list[StateBatch], new: list[StateBatch], start: int, expected: list[StateBatch]
) -> None:
    assert combined(stored, new, start) == tuple(expected)


def test_each_offset_has_the_highest_that_is_said_of_it() -> None:
    """KAFKA-19954: no part of an overlap is lost. Also: the fewest batches that say it."""
    rng = random.Random(7)
    for _ in range(1500):
        given = [
            batch(first, first + rng.randrange(8), rng.choice((0, 2, 4)), rng.randrange(1, 4))
            for first in (rng.randrange(30) for _ in range(rng.randrange(7)))
        ]
        start = rng.randrange(-1, 25)
        cut = rng.randrange(len(given) + 1)
        found = combined(given[:cut], given[cut:], start)
        said = {
            offset: max((each.delivery_count, each.delivery_state) for each in given if _covers(each, offset))
            for offset in range(max(start, 0), 50)
            if any(_covers(each, offset) for each in given)
        }
        assert {
            offset: (each.delivery_count, each.delivery_state)
            for each in found
            for offset in range(each.first_offset, each.last_offset + 1)
        } == said
        assert all(a.last_offset < b.first_offset for a, b in itertools.pairwise(found))
        assert all(a.last_offset + 1 < b.first_offset or a[2:] != b[2:] for a, b in itertools.pairwise(found))
        assert combined(found, (), start) == found


def _covers(each: StateBatch, offset: int) -> bool:
    return each.first_offset <= offset <= each.last_offset


def test_a_batch_that_ends_before_it_begins_is_not_well_formed() -> None:
    assert are_well_formed([batch(0, 0), batch(3, 9)])
    assert not are_well_formed([batch(3, 2)])
    assert not are_well_formed([batch(-1, 2)])
