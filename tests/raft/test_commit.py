from hypothesis import given
from hypothesis import strategies as st

from heirlog.raft.commit import committed_end, countable_end, flush_reached

OFFSETS = st.integers(-1, 12)


def slower_definition(ends: list[int], epoch_start: int) -> int | None:
    """The highest offset such that more than half of the voters have all below it, past the start of the epoch."""
    for offset in range(max(ends), epoch_start, -1):
        if 2 * sum(end >= offset for end in ends) > len(ends):
            return offset
    return None


@given(st.lists(OFFSETS, min_size=1, max_size=7), st.integers(0, 12))
def test_the_committed_end_agrees_with_its_slower_definition(ends: list[int], epoch_start: int) -> None:
    assert committed_end(ends, epoch_start) == slower_definition(ends, epoch_start)


@given(st.lists(OFFSETS, min_size=1, max_size=7), st.integers(0, 12), st.integers(0, 6))
def test_more_copies_never_take_a_commit_back(ends: list[int], epoch_start: int, who: int) -> None:
    more = [end + (i == who) for i, end in enumerate(ends)]
    assert (committed_end(more, epoch_start) or -1) >= (committed_end(ends, epoch_start) or -1)


def test_records_of_older_epochs_are_not_committed_by_counting_copies() -> None:
    assert committed_end([10, 10, 10], epoch_start_offset=10) is None
    assert committed_end([11, 11, 10], epoch_start_offset=10) == 11


def test_one_voter_commits_what_it_has_flushed_and_no_more() -> None:
    assert committed_end([countable_end(log_end_offset=9, flushed_offset=7)], epoch_start_offset=3) == 7
    assert not flush_reached(9, 7)
    assert flush_reached(7, 7)
