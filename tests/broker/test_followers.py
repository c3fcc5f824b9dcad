"""When a follower counts as caught up, at the edges of the limit."""

from __future__ import annotations

from heirlog.broker.followers import Follower
from heirlog.protocol.types import BrokerId


def follower_caught_up_at(at_ms: int) -> Follower:
    follower = Follower(BrokerId(2))
    follower.fetched(10, 0, 102, leader_end_offset=10, now_ms=at_ms)
    return follower


def test_at_the_leaders_end_it_is_caught_up_however_long_ago_it_fetched() -> None:
    assert follower_caught_up_at(0).is_caught_up(10, 10**9)


def test_behind_the_leaders_end_it_is_caught_up_if_it_was_at_the_limit_and_not_before_it() -> None:
    follower = follower_caught_up_at(1000)
    assert follower.is_caught_up(11, 1000)
    assert not follower.is_caught_up(11, 1001)


def test_without_a_fetch_it_is_not_caught_up_even_when_the_clock_starts() -> None:
    assert not Follower(BrokerId(2)).is_caught_up(0, -500)
