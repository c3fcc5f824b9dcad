"""What waits for a later turn of the event loop, and in which order it is handled."""

from __future__ import annotations

from collections.abc import Callable

from controller.fakes import FakeEnv

from heirlog.controller.turn_budget import RECORDS_PER_TURN, TurnBudget


class Turns:
    """Changes and parts that append some records each; a turn is everything that is due at one moment."""

    def __init__(self) -> None:
        self.env = FakeEnv()
        self.budget = TurnBudget(self.env)  # type: ignore[arg-type]
        self.handled: list[str] = []

    def work(self, name: str, records: int = RECORDS_PER_TURN, then: Callable[[], None] | None = None) -> None:
        self.handled.append(name)
        self.budget.appended(records)
        if then is not None:
            then()

    def waiting(self, name: str, records: int = RECORDS_PER_TURN) -> None:
        self.budget.wait(lambda: self.work(name, records))

    def part(self, name: str, records: int = RECORDS_PER_TURN, then: Callable[[], None] | None = None) -> None:
        self.budget.continue_later(lambda: self.work(name, records, then))

    def turn(self) -> list[str]:
        """What the next turn of the event loop handles."""
        timers, self.env._timers = self.env._timers, []
        for _, _, fn in sorted(timers):
            fn()
        handled, self.handled = self.handled, []
        return handled


def test_changes_wait_once_the_turn_has_appended_its_records_and_no_longer() -> None:
    turns = Turns()
    turns.budget.appended(RECORDS_PER_TURN - 1)
    assert not turns.budget.is_used_up
    turns.budget.appended(1)
    assert turns.budget.is_used_up
    turns.turn()
    assert not turns.budget.is_used_up


def test_a_turn_handles_small_changes_together_and_a_large_one_alone_in_the_order_of_arrival() -> None:
    turns = Turns()
    for name, records in (("a", 5000), ("b", 1), ("c", 1999), ("d", 1), ("e", 0)):
        turns.waiting(name, records)
    assert [turns.turn() for _ in range(4)] == [["a"], ["b", "c"], ["d", "e"], []]


def test_what_comes_while_others_wait_does_not_overtake_them() -> None:
    turns = Turns()
    turns.waiting("a")
    assert turns.budget.is_used_up, "nothing was appended in this turn, but a change waits"
    turns.waiting("b", 0)
    assert turns.turn() == ["a"]
    assert turns.budget.is_used_up
    assert turns.turn() == ["b"]
    assert not turns.budget.is_used_up


def test_neither_divided_changes_nor_clients_keep_the_others_out() -> None:
    turns = Turns()

    def again() -> None:
        turns.part("part", then=again)

    again()
    turns.part("other part")
    for name in ("a", "b"):
        turns.waiting(name)
    assert [turns.turn() for _ in range(3)] == [["part", "a"], ["other part", "b"], ["part"]]


def test_a_part_that_appended_nothing_still_has_one_turn() -> None:
    """It may have looked at thousands of partitions."""
    turns = Turns()
    turns.part("first", 0, then=lambda: turns.part("second", 0))
    assert [turns.turn() for _ in range(2)] == [["first"], ["second"]]
