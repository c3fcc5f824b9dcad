"""Waiting requests: woken by their keys, expired by one timer, removed without a trace."""

from __future__ import annotations

from heirlog.broker.purgatory import Purgatory

from .fakes import FakeEnv


class Note:
    """Satisfied after `needs` wakes."""

    def __init__(self, keys: str, needs: int = 1) -> None:
        self.number = -1
        self.keys = tuple(keys)
        self.needs = needs
        self.events: list[str] = []

    def try_complete(self, key: str) -> bool:
        self.events.append(key)
        self.needs -= 1
        return self.needs == 0

    def on_expiration(self) -> None:
        self.events.append("expired")


def test_a_wait_is_woken_by_its_own_keys_only() -> None:
    purgatory: Purgatory[str] = Purgatory(FakeEnv())
    wait = Note("ab", needs=2)
    purgatory.watch(wait, 100)
    purgatory.check_and_complete("c")
    purgatory.check_and_complete("a")
    purgatory.check_and_complete("b")
    assert wait.events == ["a", "b"]
    assert len(purgatory) == 0


def test_a_satisfied_wait_does_not_expire() -> None:
    env = FakeEnv()
    purgatory: Purgatory[str] = Purgatory(env)
    wait = Note("a")
    purgatory.watch(wait, 100)
    purgatory.check_and_complete("a")
    env.advance(200)
    assert wait.events == ["a"]


def test_waits_expire_in_the_order_of_their_deadlines() -> None:
    env = FakeEnv()
    purgatory: Purgatory[str] = Purgatory(env)
    late, early = Note("a"), Note("b")
    purgatory.watch(late, 100)
    purgatory.watch(early, 50)
    env.advance(60)
    assert (late.events, early.events) == ([], ["expired"])
    env.advance(40)
    assert late.events == ["expired"]


def test_a_removed_wait_is_neither_woken_nor_expired() -> None:
    env = FakeEnv()
    purgatory: Purgatory[str] = Purgatory(env)
    wait = Note("a")
    purgatory.watch(wait, 100)
    purgatory.remove(wait)
    purgatory.remove(wait)
    purgatory.check_and_complete("a")
    env.advance(200)
    assert wait.events == []


def test_dead_deadlines_do_not_pile_up() -> None:
    purgatory: Purgatory[str] = Purgatory(FakeEnv())
    for _ in range(20_000):
        purgatory.watch(Note("a"), 30_000)
        purgatory.check_and_complete("a")
    assert len(purgatory._deadlines) < 5000


def test_it_is_full_at_its_limit() -> None:
    purgatory: Purgatory[str] = Purgatory(FakeEnv(), limit=1)
    assert not purgatory.is_full
    purgatory.watch(Note("a"), 100)
    assert purgatory.is_full
