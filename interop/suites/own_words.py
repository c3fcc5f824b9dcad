"""What the suites of aiokafka and confluent-kafka ask of a broker, in our words: no registry has their tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from suites import running
from suites.running import Suite
from suites.verdict import HERE, Outcomes

CLIENT = "own_words"
TESTS = HERE / "asked"


def suites() -> list[Suite]:
    return [Suite(client, TESTS, (f"test_{client}.py",), (), environment) for client in ("aiokafka", "confluent")]


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    return running.check(CLIENT, suites())


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`."""
    return running.record(suites(), node)


def environment(address: str) -> Mapping[str, str]:
    return {"SUITE_ADDRESS": address}
