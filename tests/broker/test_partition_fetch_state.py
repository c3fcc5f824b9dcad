"""A partition that is copied: which answers count, and how long it rests after errors."""

from __future__ import annotations

from heirlog.broker.partition_fetch_state import BackOff, PartitionFetchState

from .fakes import FakeEnv, fill, partition_on


def test_an_answer_counts_only_if_its_request_or_one_before_has_said_where_we_are() -> None:
    followed = PartitionFetchState(partition_on(FakeEnv(), end_offset=3))
    assert not followed.is_answered_by(1), "nothing has been said"
    followed.named_in(2)
    followed.named_in(4)
    assert [followed.is_answered_by(number) for number in (1, 2, 3, 4)] == [False, True, True, True]


def test_what_was_in_flight_does_not_count_once_the_log_ends_elsewhere() -> None:
    followed = PartitionFetchState(partition_on(FakeEnv(), end_offset=3))
    followed.named_in(1)
    fill(followed.partition.log, 5, 0)
    followed.move()
    assert followed.start.fetch_offset == 5
    assert not followed.is_answered_by(1)
    followed.named_in(2)
    assert followed.is_answered_by(2)


def test_a_back_off_doubles_up_to_the_longest_and_begins_anew() -> None:
    back_off = BackOff()
    assert [back_off.next_ms(100) for _ in range(4)] == [20, 40, 80, 100]
    back_off.reset()
    assert back_off.next_ms(100) == 20
