"""Every test of Apache Kafka about transactions has a test here, or a reason why it has none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parents[1]
TABLE: dict[str, dict[str, str]] = tomllib.loads((HERE / "upstream.toml").read_text(encoding="utf-8"))
OUTSIDE: dict[str, dict[str, str]] = tomllib.loads((HERE / "upstream_outside.toml").read_text(encoding="utf-8"))
COUNTS = {
    "TransactionCoordinatorTest": 81,
    "TransactionCoordinatorConcurrencyTest": 11,
    "TransactionStateManagerTest": 38,
    "TransactionMarkerChannelManagerTest": 12,
    "TransactionMarkerRequestCompletionHandlerTest": 19,
    "TransactionMetadataTest": 29,
    "AddPartitionsToTxnManagerTest": 5,
    "AddPartitionsToTxnRequestServerTest": 3,
    "TransactionLogTest": 8,
}
"""Test methods in the test jars of Apache Kafka 4.2.0."""


def test_every_upstream_test_is_listed() -> None:
    assert {name: len(tests) for name, tests in TABLE.items()} == COUNTS


@pytest.mark.parametrize("upstream", TABLE)
def test_what_is_named_exists(upstream: str) -> None:
    for name, place in TABLE[upstream].items():
        path = place.partition("::")[0]
        _expect(name, place, TESTS / path[1:] if path.startswith("/") else HERE / path)


@pytest.mark.parametrize("upstream", OUTSIDE)
def test_what_is_named_outside_of_the_coordinator_exists(upstream: str) -> None:
    for name, place in OUTSIDE[upstream].items():
        path = place.partition("::")[0]
        _expect(name, place, TESTS.parent / path if path.startswith("interop/") else TESTS / path)


def _expect(name: str, place: str, file: Path) -> None:
    if place.startswith("none: "):
        assert len(place.split()) > 5, f"{name}: {place}"
        return
    test = place.partition("::")[2]
    assert file.is_file(), f"{name}: {place}"
    if test:
        assert re.search(rf"^def {test}\(", file.read_text(encoding="utf-8"), re.M), f"{name}: {place}"
    elif file.suffix == ".json":
        assert name.replace("-", "_") in file.read_text(encoding="utf-8").replace("-", "_"), f"{name}: {place}"
    else:
        assert file.suffix == ".txt" or "interop" in file.parts, f"{name}: a script, or a test of a file"
