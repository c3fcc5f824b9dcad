"""Pauses that grow, and what is raised when there is no time left."""

from __future__ import annotations

import pytest
from client.driving import World

from heirlog.client.retry_timer import RetryTimer


def test_pauses_double_up_to_the_longest_one() -> None:
    world = World(lambda _, __: None)
    retry_timer = RetryTimer(30, world, longest_pause_s=0.1)
    for _ in range(5):
        world.run(retry_timer.back_off(ConnectionError("gone")))
    assert world.pauses == pytest.approx([0.02, 0.04, 0.08, 0.1, 0.1])
    retry_timer.reset()
    world.run(retry_timer.back_off(ConnectionError("gone")))
    assert world.pauses[-1] == pytest.approx(0.02)


def test_a_try_that_the_end_of_the_time_cut_short_does_not_hide_what_failed_before_it() -> None:
    world = World(lambda _, __: None)
    retry_timer = RetryTimer(0.1, world)
    world.run(retry_timer.back_off(ConnectionError("the first")))
    world.run(retry_timer.back_off(ConnectionError("the last but one")))
    with pytest.raises(ConnectionError, match="the last but one"):
        world.run(retry_timer.back_off(TimeoutError("no time")))
    with pytest.raises(ConnectionError, match="the last but one"), retry_timer.raising_earlier_failure():
        raise TimeoutError("no time")


def test_where_nothing_else_failed_the_time_is_named_also_after_progress() -> None:
    world = World(lambda _, __: None)
    retry_timer = RetryTimer(30, world)
    world.run(retry_timer.back_off(ConnectionError("long ago")))
    retry_timer.reset()
    with pytest.raises(TimeoutError), retry_timer.raising_earlier_failure():
        raise TimeoutError("no time")
    world.now = 31
    assert retry_timer.is_expired
    with pytest.raises(TimeoutError):
        world.run(retry_timer.back_off(TimeoutError("no time")))


def test_other_errors_pass_as_they_are() -> None:
    world = World(lambda _, __: None)
    retry_timer = RetryTimer(30, world)
    world.run(retry_timer.back_off(ConnectionError("gone")))
    with pytest.raises(ValueError, match="wrong"), retry_timer.raising_earlier_failure():
        raise ValueError("wrong")


def test_one_try_takes_a_third_of_the_time_and_never_more_than_is_left() -> None:
    world = World(lambda _, __: None)
    assert RetryTimer(30, world).attempt_s() == pytest.approx(10)
    assert RetryTimer(2, world).attempt_s() == pytest.approx(1)
    retry_timer = RetryTimer(30, world)
    world.now = 25
    assert retry_timer.attempt_s() == pytest.approx(5)
