"""Waiting for an election that cannot be held yet, while a real controller changes its mind or is another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from controller.recovering import STRATEGY, Cluster, back, lost

from heirlog.cli import elections
from heirlog.cli.elections import ElectionType
from heirlog.protocol.messages import DescribeRecoveryRequest, ElectLeadersRequest

PLACE = ("foo", 0)


class Client:
    """Asks the controller at hand. before: what happens before its n-th description."""

    def __init__(self, cluster: Cluster, before: dict[int, Callable[[], None]]) -> None:
        self.cluster = cluster
        self.before = before
        self.descriptions = 0
        self.elections = 0

    def run(self, call: Any) -> Any:
        try:
            ask = next(call)
            while True:
                ask = call.send(self._answer(ask.message))
        except StopIteration as end:
            return end.value

    def _answer(self, message: Any) -> Any:
        if isinstance(message, ElectLeadersRequest):
            self.elections += 1
            return self.cluster.harness.ask("elect_leaders", message, 3)
        assert isinstance(message, DescribeRecoveryRequest)
        self.descriptions += 1
        self.before.pop(self.descriptions, lambda: None)()
        return self.cluster.harness.ask("describe_recovery", message, 0)


def held(cluster: Cluster, kind: ElectionType, before: dict[int, Callable[[], None]], wait_s: float) -> tuple[Any, int]:
    """What became of it, and how often it was asked for."""
    client = Client(cluster, before)
    results = elections.run(client, kind, [PLACE], wait_s=wait_s)  # type: ignore[arg-type]
    return results[PLACE], client.elections


def fail_over(cluster: Cluster) -> None:
    cluster.harness.lose()
    cluster.harness.lead()
    cluster.harness.commit()


def answers_come(cluster: Cluster) -> None:
    for broker in cluster.asked():
        cluster.reply(broker, 0, broker)
    cluster.advance(5_000)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "POLL_S", 0.0)


def test_another_controller_is_told_the_wish_of_the_operator_again() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2)
    before = {2: lambda: fail_over(cluster), 4: lambda: answers_come(cluster)}
    result, asked = held(cluster, ElectionType.LONGEST_LOG_AGGRESSIVE, before, 60.0)
    assert (result.code, result.message, asked) == (0, "broker 2", 2)


def test_a_wish_that_was_never_seen_is_told_again() -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2)
    before = {1: lambda: fail_over(cluster), 3: lambda: answers_come(cluster)}
    result, asked = held(cluster, ElectionType.LONGEST_LOG_AGGRESSIVE, before, 60.0)
    assert (result.code, asked) == (0, 2)


def test_who_configures_another_strategy_meanwhile_has_the_last_word_whoever_the_controller_is() -> None:
    cluster = back(lost(), 1, 2)

    def configured() -> None:
        cluster.set(**{"min.insync.replicas": "3", STRATEGY: "None"})

    before = {2: configured, 3: lambda: fail_over(cluster), 5: lambda: answers_come(cluster)}
    result, asked = held(cluster, ElectionType.LONGEST_LOG_AGGRESSIVE, before, 0.2)
    assert result.message == "waits for an operator"
    assert (cluster.leader(), asked) == (-1, 1)


def test_a_wait_is_said_once_and_not_again_for_each_second(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = back(lost(unclean_recovery_strategy="None"), 1, 2)

    def a_second() -> None:
        cluster.advance(1_000)

    before = {2: a_second, 3: a_second, 4: a_second, 5: lambda: answers_come(cluster)}
    result, _ = held(cluster, ElectionType.LONGEST_LOG_AGGRESSIVE, before, 60.0)
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "compares the logs" in line)
    assert result.code == 0 and line.startswith("foo-0: ")
