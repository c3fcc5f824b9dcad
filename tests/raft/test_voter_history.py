"""Voter sets by offset, compared with a slower second definition: the list of all sets, filtered at each question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.protocol.types import BrokerId, Endpoint, Uuid
from heirlog.raft.control import Voter
from heirlog.raft.voter_history import BASE_OFFSET, VoterHistory, changed_voters


def voter(number: int, disk: int = 1, port: int = 9093) -> Voter:
    return Voter(BrokerId(number), Uuid(bytes([disk] * 16)), Endpoint(f"controller-{number}", port))


ONE = (voter(1),)
TWO = (voter(1), voter(2))
THREE = (voter(1), voter(2), voter(3))


def history() -> VoterHistory:
    known = VoterHistory(ONE)
    known.add(10, TWO)
    known.add(20, THREE)
    return known


def test_the_newest_set_is_in_force_whether_it_is_committed_or_not() -> None:
    assert history().latest == THREE
    assert history().latest_offset == 20


def test_a_snapshot_gets_the_set_at_its_end() -> None:
    assert [history().at(end) for end in (0, 10, 11, 20, 21)] == [ONE, ONE, TWO, TWO, THREE]


def test_a_truncation_restores_the_set_before() -> None:
    known = history()
    known.truncate_to(20)
    assert (known.latest, known.latest_offset) == (TWO, 10)
    known.truncate_to(0)
    assert (known.latest, known.latest_offset) == (ONE, BASE_OFFSET)


def test_the_set_at_the_start_of_the_log_is_kept_when_the_log_is_shortened() -> None:
    known = history()
    known.trim_to(15)
    assert known.at(15) == TWO
    assert known.latest == THREE
    known.truncate_to(15)
    assert known.latest == TWO


def test_a_set_below_the_newest_one_is_refused() -> None:
    with pytest.raises(ValueError, match="offset 20, and the newest known ones are at 20"):
        history().add(20, ONE)


def test_another_endpoint_is_no_change_and_another_disk_is() -> None:
    moved = (voter(1, port=1), voter(2), voter(3))
    replaced = (voter(1, disk=2), voter(2), voter(3))
    assert changed_voters(THREE, moved) == 0
    assert changed_voters(THREE, replaced) == 1
    assert changed_voters(TWO, THREE) == changed_voters(THREE, TWO) == 1
    assert changed_voters(ONE, THREE) == 2


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 5)),
        st.tuples(st.just("truncate"), st.integers(0, 12)),
        st.tuples(st.just("trim"), st.integers(0, 12)),
    ),
    max_size=20,
)


@given(CHANGES)
def test_the_history_answers_as_the_list_of_all_sets(changes: list[tuple[str, int]]) -> None:
    known = VoterHistory(ONE)
    everything = [(BASE_OFFSET, ONE)]
    start = end = 0
    for number, (what, amount) in enumerate(changes):
        if what == "add":
            end += amount
            everything.append((end - 1, (voter(number + 2),)))
            known.add(*everything[-1])
        elif what == "truncate" and amount <= end - start:
            end -= amount
            everything = [one for one in everything if one[0] < end or one[0] == BASE_OFFSET]
            known.truncate_to(end)
        elif what == "trim" and amount <= end - start:
            start += amount
            known.trim_to(start)
        for asked in range(max(start, 1), end + 1):
            assert known.at(asked) == [voters for offset, voters in everything if offset < asked][-1]
        if end > start:
            assert known.latest == everything[-1][1]


def test_a_voter_is_removed_by_the_first_set_without_it() -> None:
    one, two, three = voter(1), voter(2), voter(3)
    history = VoterHistory((one,))
    history.add(5, (one, two))
    history.add(9, (two,))
    history.add(12, (two, three))
    assert history.removed(one.key) == (9, one)
    assert history.removed(two.key) is None, "it is in the set in force"
    assert history.removed(voter(4).key) is None, "it never was in one"
    history.add(20, (one, two, three))
    assert history.removed(one.key) is None, "it was added again"
    history.truncate_to(9)
    assert history.removed(one.key) is None
