from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.spark.plan import Range, share, split, waiting


def ranges(*sizes: int) -> list[Range]:
    return [Range("t", number, 10, 10 + size, last_epoch=3) for number, size in enumerate(sizes)]


def sizes(parts: list[Range]) -> list[int]:
    return [part.size for part in parts]


def test_there_is_a_task_per_partition_that_has_something() -> None:
    assert split(ranges(5, 0, 7)) == ranges(5, 0, 7)[::2]


def test_a_range_above_the_maximum_is_cut_into_equal_parts() -> None:
    assert sizes(split(ranges(10, 3), max_records=4)) == [3, 3, 4, 3]


def test_large_ranges_are_cut_until_there_are_enough_tasks() -> None:
    assert sizes(split(ranges(100, 1), min_partitions=5)) == [25, 25, 25, 25, 1]


def test_more_tasks_than_records_are_a_task_per_record() -> None:
    assert sizes(split(ranges(3, 1), min_partitions=2**31 - 1)) == [1, 1, 1, 1]


def test_enough_tasks_are_left_as_they_are() -> None:
    assert split(ranges(100, 1), min_partitions=2) == ranges(100, 1)


def test_only_the_first_part_knows_the_epoch_of_the_record_before_it() -> None:
    assert [part.last_epoch for part in split(ranges(10), max_records=5)] == [3, -1]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 10_000), max_size=8),
    st.one_of(st.none(), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(100, 5000)),
)
def test_the_parts_are_the_ranges_however_they_are_cut(
    counts: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    parts = split(ranges(*counts), min_partitions, max_records)
    for number, count in enumerate(counts):
        own = [part for part in parts if part.partition == number]
        assert sum(part.size for part in own) == count
        stops = [10, *(part.stop for part in own)]
        assert [part.start for part in own] == stops[:-1]
    assert all(part.size for part in parts)
    assert max_records is None or all(part.size <= max_records for part in parts)


def test_a_limit_is_shared_in_proportion_and_starves_nobody() -> None:
    begins = {("t", 0): 0, ("t", 1): 100, ("t", 2): 5}
    ends = {("t", 0): 9000, ("t", 1): 1100, ("t", 2): 6}
    assert share(100, begins, ends) == {("t", 0): 89, ("t", 1): 109, ("t", 2): 6}


def test_a_limit_above_what_waits_changes_nothing() -> None:
    begins, ends = {("t", 0): 0}, {("t", 0): 10}
    assert share(2**63 - 1, begins, ends) == ends
    assert share(5, ends, ends) == ends


@settings(deadline=None)
@given(
    st.integers(1, 10_000), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=9)
)
def test_a_shared_batch_moves_on_and_never_too_far(limit: int, given: list[tuple[int, int]]) -> None:
    begins = {("t", number): begin for number, (begin, _) in enumerate(given)}
    ends = {("t", number): begin + size for number, (begin, size) in enumerate(given)}
    shared = share(limit, begins, ends)
    assert all(begins[key] <= shared[key] <= ends[key] for key in ends)
    assert waiting(begins, shared) <= limit + len(given)
    assert (waiting(begins, shared) > 0) == (waiting(begins, ends) > 0)


@pytest.mark.parametrize("begin", [0, 7])
def test_what_waits_is_counted_from_the_begins(begin: int) -> None:
    assert waiting({("t", 0): begin}, {("t", 0): 10}) == 10 - begin
