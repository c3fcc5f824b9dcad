"""What is left out of the audit log is counted, and never silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heirlog.node.audit_budget import (
    ANY_CLIENT,
    BURST_S,
    EXECUTED_PER_S,
    KINDS_MAX,
    NAMES_MAX,
    REFUSED_PER_S,
    SUMMARY_MS,
    AuditBudget,
    AuditKind,
    LeftOut,
)

DELETED = AuditKind("User:mallory", "10.0.0.9", "DeleteTopics", True)
REFUSED = DELETED._replace(is_executed=False)
BURST = BURST_S * EXECUTED_PER_S


class Clock:
    """A budget with a virtual clock, and the lines that it lets through or writes."""

    def __init__(self) -> None:
        self.now = 0
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.lines: list[AuditKind] = []
        self.left_out: list[tuple[AuditKind, int, list[str], dict[str, int]]] = []
        self.budget = AuditBudget(lambda: self.now, self.call_later, self._write)

    def call_later(self, delay_ms: int, fn: Callable[[], None]) -> Callable[[], None]:
        self.timers.append((self.now + delay_ms, fn))
        return lambda: None

    def _write(self, kind: AuditKind, found: LeftOut) -> None:
        self.left_out.append((kind, found.requests, found.shown(), dict(found.outcome)))

    def ask(self, kind: AuditKind = DELETED, times: int = 1, name: str = "t") -> None:
        for _ in range(times):
            if self.budget.allows(kind):
                self.lines.append(kind)
            else:
                self.budget.leave_out(kind, [name], {"NONE": 1})

    def pass_ms(self, ms: int) -> None:
        self.now += ms
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, fn in due:
            fn()

    @property
    def count(self) -> int:
        """Requests that the log accounts for."""
        return len(self.lines) + sum(requests for _, requests, *_ in self.left_out)


def test_a_burst_has_a_line_each_and_the_first_one_beyond_is_a_line_at_once() -> None:
    clock = Clock()
    clock.ask(times=BURST)
    assert (len(clock.lines), clock.left_out) == (BURST, [])
    clock.ask(name="orders")
    assert clock.left_out == [(DELETED, 1, ["orders"], {"NONE": 1})]


def test_what_follows_is_counted_in_a_line_although_no_further_request_comes() -> None:
    clock = Clock()
    clock.ask(times=BURST + 1)
    clock.ask(times=30, name="a")
    clock.ask(times=12, name="b")
    assert len(clock.left_out) == 1
    clock.pass_ms(SUMMARY_MS)
    assert clock.left_out[1:] == [(DELETED, 42, ["a", "b"], {"NONE": 42})]


def test_a_flood_costs_as_many_lines_as_its_time_allows_and_every_request_is_accounted_for() -> None:
    clock = Clock()
    seconds, per_s = 60, 500
    for _ in range(seconds * 10):
        clock.ask(times=per_s // 10)
        clock.pass_ms(100)
    clock.pass_ms(SUMMARY_MS)
    assert clock.count == seconds * per_s
    assert len(clock.lines) <= BURST + seconds * EXECUTED_PER_S
    assert len(clock.left_out) <= 2 + 1000 * seconds // SUMMARY_MS


def test_requests_that_are_refused_hide_none_that_is_executed() -> None:
    clock = Clock()
    clock.ask(REFUSED, times=10_000)
    assert len(clock.lines) == BURST_S * REFUSED_PER_S
    clock.ask()
    assert clock.lines[-1] == DELETED


def test_those_of_one_api_or_one_client_hide_none_of_another() -> None:
    clock = Clock()
    clock.ask(times=10_000)
    for other in (DELETED._replace(api="DeleteAcls"), DELETED._replace(principal="User:bob"),
                  DELETED._replace(host="10.0.0.8")):  # fmt: skip
        clock.ask(other)
        assert clock.lines[-1] == other


def test_a_kind_that_was_quiet_begins_with_a_line_at_once_again() -> None:
    clock = Clock()
    clock.ask(times=BURST + 1)
    clock.pass_ms(SUMMARY_MS)
    assert not clock.timers, "nothing more is to be said"
    clock.ask(times=BURST + 1)
    assert [requests for _, requests, *_ in clock.left_out] == [1, 1]


def test_a_node_that_stops_writes_what_it_has_counted() -> None:
    clock = Clock()
    clock.ask(times=BURST + 6)
    clock.budget.write_all()
    clock.budget.write_all()
    assert [requests for _, requests, *_ in clock.left_out] == [1, 5]
    clock.pass_ms(SUMMARY_MS)
    assert clock.count == BURST + 6, "counted once"


def test_a_count_has_few_names() -> None:
    clock = Clock()
    clock.ask(times=BURST + 1)
    for number in range(2 * NAMES_MAX):
        clock.ask(name=f"t{number}")
    clock.pass_ms(SUMMARY_MS)
    assert clock.left_out[-1][2] == [*(f"t{number}" for number in range(NAMES_MAX)), "..."]


def test_very_many_clients_share_a_budget_until_others_are_quiet() -> None:
    clock = Clock()
    clients: list[Any] = [DELETED._replace(host=f"10.1.{n // 250}.{n % 250}") for n in range(KINDS_MAX + 5)]
    for client in clients:
        clock.ask(client, times=2)
    assert clock.count == 2 * len(clients)
    clock.ask(DELETED._replace(host="10.9.9.9"), times=10_000)
    assert clock.left_out[0][0] == DELETED._replace(principal=ANY_CLIENT, host=ANY_CLIENT)
    assert len(clock.budget._buckets) <= KINDS_MAX + 1
    clock.pass_ms(SUMMARY_MS)
    clock.ask(clients[-1])
    assert clients[-1] in clock.budget._buckets and len(clock.budget._buckets) < 10
