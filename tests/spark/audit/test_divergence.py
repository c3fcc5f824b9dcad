"""Replicas compared batch by batch, and sequences of producers."""

from __future__ import annotations

from heirlog.protocol.batch import LAST_SEQUENCE
from heirlog.spark.audit.divergence import Difference, compare
from heirlog.spark.audit.producer_runs import GAP, REPEATED, Run, broken


def held(*batches: tuple[int, int, str]) -> list[tuple[int, ...]]:
    """(base offset, epoch, content) each, of one offset."""
    return [(offset, 0, epoch, hash(content), 70, 0, -1) for offset, epoch, content in batches]


A, B, C = (0, 0, "a"), (1, 0, "b"), (2, 0, "c")
WHOLE = [(0, 10)]


def test_equal_logs_have_no_difference_whatever_they_cover() -> None:
    batches = {1: held(A, B, C), 2: held(B, C), 3: held(A, B), 4: held(A, C)}
    ranges = {1: [(0, 3)], 2: [(1, 3)], 3: [(0, 2)], 4: [(0, 1), (2, 3)]}
    assert compare([1], batches, ranges) == []


def test_the_first_difference_names_both_epochs() -> None:
    batches = {1: held(A, (1, 3, "x"), (2, 3, "y")), 2: held(A, B, C)}
    assert compare([1], batches, {1: WHOLE, 2: WHOLE}) == [Difference(2, 1, 1, 0, 3)]


def test_a_batch_that_only_one_log_has_is_a_difference_where_both_cover_it() -> None:
    batches = {1: held(A, B, C), 2: held(A, C)}
    assert compare([1], batches, {1: WHOLE, 2: WHOLE}) == [Difference(2, 1, 1, -1, 0)]


def test_of_several_candidates_the_one_that_most_agree_with_is_the_reference() -> None:
    batches = {1: held(A, (1, 0, "x")), 2: held(A, B), 3: held(A, B)}
    ranges = dict.fromkeys(batches, WHOLE)
    assert compare([1, 2, 3], batches, ranges) == [Difference(1, 2, 1, 0, 0)]
    # two members of the ELR: the third replica decides
    assert compare([1, 2], batches, ranges) == [Difference(1, 2, 1, 0, 0)]
    # the metadata prefers it
    assert compare([1], batches, ranges) == [Difference(2, 1, 1, 0, 0), Difference(3, 1, 1, 0, 0)]


def run(first: int, last: int, offset: int, epoch: int = 0) -> Run:
    return Run(7, epoch, first, last, offset, offset + 1)


def test_runs_join_break_and_repeat() -> None:
    assert broken(run(0, 4, 0), run(5, 5, 10)) is None
    assert broken(run(9, LAST_SEQUENCE, 0), run(0, 0, 10)) is None
    assert broken(run(0, 4, 0), run(0, 3, 10, epoch=1)) is None
    for after, kind in ((run(6, 6, 10), GAP), (run(4, 4, 10), REPEATED), (run(2, 3, 10, epoch=1), GAP)):
        found = broken(run(0, 4, 0), after)
        assert found is not None
        assert found[0] == kind
        assert "offset 10" in found[1]
    assert broken(run(0, 4, 0, epoch=2), run(5, 5, 10, epoch=1)) is not None
