"""Brokers that have just gone: how long answers about them wait, and how long clients still see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.broker import lost_leaders
from heirlog.broker.lost_leaders import DOUBT_MS, LISTED_MS, LostLeaders
from heirlog.env import SendFailure
from heirlog.pending import Pending
from heirlog.protocol.messages import FetchResponse

from .fakes import BrokerId, FakeEnv, Image, Rig, registered, state


class Seen:
    """Brokers 1 to 3 and the image; `asked` holds what was answered."""

    def __init__(self) -> None:
        self.env = FakeEnv()
        self.lost = LostLeaders(self.env)
        self.image = Image()
        self.answered: list[int] = []
        self.set(1, 2, 3)

    def set(self, *brokers: int, **kwargs: Any) -> None:
        journal = self.image.journal()
        for broker in brokers:
            self.image.set_broker(BrokerId(broker), registered(broker, **kwargs), journal)
        self.lost.on_image(self.image, journal)

    def ask(self, leader: int) -> Any:
        def answer() -> int:
            self.answered.append(leader)
            return leader

        return self.lost.when_decided(lambda brokers: leader in brokers, answer)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_an_answer_about_a_leader_whose_connection_closed_waits_until_it_is_fenced(seen: Seen) -> None:
    seen.lost.connection_closed(BrokerId(2))
    waiting = seen.ask(2)
    assert isinstance(waiting, Pending)
    assert seen.ask(3) == 3
    seen.set(3)
    assert not waiting.done
    seen.set(2, fenced=True)
    assert waiting.done
    assert seen.ask(2) == 2


def test_it_waits_no_longer_than_the_doubt(seen: Seen) -> None:
    seen.lost.connection_closed(BrokerId(2))
    seen.env.advance(DOUBT_MS - 1)
    seen.lost.connection_closed(BrokerId(2))
    waiting = seen.ask(2)
    seen.env.advance(1)
    assert waiting.done
    assert seen.ask(2) == 2


def test_one_that_concerns_two_waits_for_both(seen: Seen) -> None:
    seen.lost.connection_closed(BrokerId(2))
    seen.lost.connection_closed(BrokerId(3))
    waiting = seen.lost.when_decided(lambda brokers: bool(brokers), lambda: "answer")
    seen.set(2, fenced=True)
    assert not waiting.done
    seen.set(3, fenced=True)
    assert waiting.done


def test_a_fenced_broker_is_never_in_doubt(seen: Seen) -> None:
    seen.set(2, fenced=True)
    seen.lost.connection_closed(BrokerId(2))
    assert seen.ask(2) == 2


def test_an_abandoned_answer_is_never_made(seen: Seen) -> None:
    seen.lost.connection_closed(BrokerId(2))
    seen.ask(2).abandon()
    seen.set(2, fenced=True)
    assert not seen.answered


def test_one_more_than_may_wait_does_not(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_leaders, "WAITS_MAX", 1)
    seen.lost.connection_closed(BrokerId(2))
    assert isinstance(seen.ask(2), Pending)
    assert seen.ask(2) == 2


def test_a_broker_is_listed_for_a_while_after_it_was_fenced(seen: Seen) -> None:
    assert not seen.lost.listed()
    seen.set(2, fenced=True)
    seen.env.advance(LISTED_MS - 1)
    seen.set(2, fenced=True)
    assert seen.lost.listed() == {2}
    seen.env.advance(1)
    assert not seen.lost.listed()


@pytest.mark.parametrize("again", [{}, {"fenced": True, "in_controlled_shutdown": True}])
def test_one_that_is_back_or_stops_cleanly_is_not_listed_as_fenced(seen: Seen, again: dict[str, Any]) -> None:
    if not again:
        seen.set(2, fenced=True)
    seen.set(2, **again)
    assert not seen.lost.listed()


def test_a_removed_broker_is_not_listed_and_not_waited_for(seen: Seen) -> None:
    seen.lost.connection_closed(BrokerId(2))
    waiting = seen.ask(2)
    journal = seen.image.journal()
    seen.image.set_broker(BrokerId(2), None, journal)
    seen.lost.on_image(seen.image, journal)
    assert waiting.done
    assert not seen.lost.listed()


def test_a_loaded_image_lists_who_was_live_before(seen: Seen) -> None:
    loaded = Image()
    loaded.set_broker(BrokerId(2), registered(2, fenced=True), loaded.journal())
    loaded.set_broker(BrokerId(4), registered(4, fenced=True), loaded.journal())
    seen.lost.on_image(loaded, None)
    assert seen.lost.listed() == {2}


def follows_two() -> tuple[Rig, Callable[[], bool]]:
    rig = Rig().started()
    rig.show(state([1, 2], leader=2))
    return rig, lambda: isinstance(
        rig.broker.lost_leaders.when_decided(lambda brokers: 2 in brokers, lambda: "answer"), Pending
    )


def test_the_first_closed_fetch_after_an_answer_puts_the_leader_in_doubt() -> None:
    rig, waits = follows_two()
    assert not waits()
    rig.env.take("replica-fetch-0").on_result(SendFailure("disconnected"))
    assert waits()
    rig.env.advance(DOUBT_MS)
    assert not waits()
    rig.env.take("replica-fetch-0").on_result(SendFailure("disconnected"))
    assert not waits()
    rig.env.advance(2_000)
    rig.env.take("replica-fetch-0").on_result(FetchResponse())
    rig.env.take("replica-fetch-0").on_result(SendFailure("disconnected"))
    assert waits()


def test_silence_of_a_leader_is_no_doubt() -> None:
    rig, waits = follows_two()
    rig.env.take("replica-fetch-0").on_result(SendFailure("timed-out"))
    assert not waits()
