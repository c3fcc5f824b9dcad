"""Replicas compared batch by batch, and sequences of producers."""

from __future__ import annotations

from pathlib import Path

from heirlog.protocol.batch import LAST_SEQUENCE, encode_batch
from heirlog.spark.audit.divergence import Difference, compare, read_buckets
from heirlog.spark.audit.producer_runs import GAP, REPEATED, Run, broken


def held(*batches: tuple[int, int, str]) -> list[tuple[int, ...]]:
    """(base offset, epoch, content) each, of one offset."""
    return [(offset, 0, epoch, hash(content), 70, 0, -1) for offset, epoch, content in batches]


A, B, C = (0, 0, "a"), (1, 0, "b"), (2, 0, "c")
WHOLE = [(0, 10)]
LEADER_1 = {1: 3, 2: 2, 3: 2, 4: 2}


def test_equal_logs_have_no_difference_whatever_they_cover() -> None:
    batches = {1: held(A, B, C), 2: held(B, C), 3: held(A, B), 4: held(A, C)}
    ranges = {1: [(0, 3)], 2: [(1, 3)], 3: [(0, 2)], 4: [(0, 1), (2, 3)]}
    assert compare(LEADER_1, batches, ranges) == []


def test_the_first_difference_names_both_epochs() -> None:
    batches = {1: held(A, (1, 3, "x"), (2, 3, "y")), 2: held(A, B, C)}
    assert compare(LEADER_1, batches, {1: WHOLE, 2: WHOLE}) == [Difference(2, 1, 1, 0, 3)]


def test_a_batch_that_only_one_log_has_is_a_difference_where_both_cover_it() -> None:
    batches = {1: held(A, B, C), 2: held(A, C)}
    assert compare(LEADER_1, batches, {1: WHOLE, 2: WHOLE}) == [Difference(2, 1, 1, -1, 0)]


def test_of_several_candidates_the_one_that_most_agree_with_is_the_reference() -> None:
    batches = {1: held(A, (1, 0, "x")), 2: held(A, B), 3: held(A, B)}
    ranges = dict.fromkeys(batches, WHOLE)
    assert compare({1: 2, 2: 2, 3: 2}, batches, ranges) == [Difference(1, 2, 1, 0, 0)]
    # two members of the ELR: the third replica decides
    assert compare({1: 1, 2: 1, 3: 0}, batches, ranges) == [Difference(1, 2, 1, 0, 0)]
    batches[1] = held(A, (1, 3, "x"))
    assert compare({1: 1, 2: 1, 3: 0}, batches, ranges) == [Difference(1, 2, 1, 3, 0)]
    # one that does not cover the offset does not hide that the others differ
    assert compare({1: 2, 2: 2, 3: 2}, batches, {**ranges, 3: [(0, 1)]}) == [Difference(2, 1, 1, 0, 3)]


def test_in_one_leader_epoch_a_leader_is_wrong_that_most_others_contradict() -> None:
    batches = {1: held(A, (1, 0, "x")), 2: held(A, B), 3: held(A, B)}
    ranges = dict.fromkeys(batches, WHOLE)
    assert compare(LEADER_1, batches, ranges) == [Difference(1, 2, 1, 0, 0)]
    # not by replicas that are damaged, or that have nothing to say of the offset
    both = [Difference(2, 1, 1, 0, 0), Difference(3, 1, 1, 0, 0)]
    assert compare({1: 3, 2: 2, 3: -1}, batches, ranges) == both
    assert compare(LEADER_1, batches, {**ranges, 3: [(0, 1)]}) == both[:1]
    # of another epoch the metadata know which is right
    batches[1] = held(A, (1, 3, "x"))
    assert compare(LEADER_1, batches, ranges) == [Difference(2, 1, 1, 0, 3), Difference(3, 1, 1, 0, 3)]


def test_a_tail_of_another_epoch_does_not_hide_that_two_logs_contradict_each_other() -> None:
    stale, newer = (1, 3, "old"), (1, 5, "new")
    batches = {1: held(A, newer, (2, 5, "x")), 2: held(A, newer, (2, 5, "y")), 3: held(A, stale)}
    ranges = {**dict.fromkeys(batches, WHOLE), 3: [(0, 2)]}
    contradicted, behind = Difference(2, 1, 2, 5, 5), Difference(3, 1, 1, 3, 5)
    # the leader and a follower, members of the ISR, replicas of which the metadata say nothing
    for ranks in ({1: 3, 2: 0, 3: 0}, {1: 2, 2: 2, 3: 0}, {1: 0, 2: 0, 3: 0}):
        assert compare(ranks, batches, ranges) == [contradicted, behind]
    # a damaged log may show any epoch
    batches[3] = held(A, (1, 9, "?"))
    assert compare({1: 3, 2: 2, 3: -1}, batches, ranges) == [contradicted, Difference(3, 1, 1, 9, 5)]


def test_where_the_log_cleaner_has_been_only_batches_of_both_logs_are_compared() -> None:
    batches = {1: held(A, (1, 0, "x"), (3, 0, "d")), 2: held(B, C)}
    ranges = dict.fromkeys(batches, WHOLE)
    assert compare(LEADER_1, batches, ranges, cleaned_to=3) == [Difference(2, 1, 1, 0, 0)]
    batches[2] = held(C)
    assert compare(LEADER_1, batches, ranges, cleaned_to=3) == [Difference(2, 1, 3, -1, 0)]
    assert compare(LEADER_1, batches, ranges, cleaned_to=4) == []


def test_of_a_cleaned_part_only_batches_are_read_that_the_log_cleaner_has_not_changed(tmp_path: Path) -> None:
    values = [(b"k%d" % i, b"v", (), 1000) for i in range(3)]
    whole, cleaned, beyond = (bytearray(encode_batch(values, offset, 0)) for offset in (0, 3, 6))
    for changed in (cleaned, beyond):
        changed[57:61] = (1).to_bytes(4, "big")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(whole + cleaned + beyond)
    (found,) = read_buckets(str(path), 0, [0], cleaned_to=6)
    assert found[0].tolist() == [0, 6]


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
