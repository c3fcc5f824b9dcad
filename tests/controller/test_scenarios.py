"""The catalogue of KIP-966 scenarios, event by event: what real Kafka did, except where heirlog chose otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from controller.scenarios import SUPPORTED, Runner

_FILE = Path(__file__).parent / "data" / "elr-scenarios.json"
SCENARIOS = {
    scenario["id"]: scenario
    for scenario in json.loads(_FILE.read_text())["scenarios"]
    if scenario["layer"] in ("controller", "partition_builder")
}

DEVIATIONS = {
    "C016": "the cap on min ISR is each partition's own number of replicas",
    "C101": "which imbalanced partitions come first is hash order upstream, partition order here",
    "C133": "a completed reassignment trims the ELR to the final replicas",
    "C143": "a reassignment does not complete while no final replica can lead",
    "C181": "a replica on a failed directory never enters the ELR",
    "C186": "ClearElr keeps the index in step, so the registration succeeds",
    "C192": "the full last-known list belongs to the recovery manager",
    "C193": "the full last-known list belongs to the recovery manager",
}
"""Scenarios whose recorded outcome is upstream's and not ours, with the choice; each has a test of its own below."""

SETS = {"elr", "lastKnownElr", "adding", "removing", "eligibleLeaderReplicas", "addingReplicas", "removingReplicas"}


def playable(scenario: dict[str, Any]) -> bool:
    return all(step["event"]["type"] in SUPPORTED for step in scenario["steps"])


def normal(value: Any, epochs: dict[int, str], key: str = "") -> Any:
    """Sets as sorted lists, epochs made by the run as a symbol, empty defaults left out."""
    if isinstance(value, dict):
        return {
            name: normal(child, epochs, name)
            for name, child in value.items()
            if not (name in ("adding", "removing") and not child)
        }
    if isinstance(value, list):
        items = [normal(child, epochs) for child in value]
        if key in SETS:
            return sorted(items)
        return sorted(items, key=_record_order) if key == "records" else items
    if key in ("epoch", "brokerEpoch"):
        return epochs.get(value, value)
    return value


def _record_order(record: dict[str, Any]) -> tuple[Any, ...]:
    """Runs of partition changes are a set; everything else keeps its place among the types, which is checked apart."""
    return (record["type"], record.get("topic", ""), record.get("partition", 0))


def kinds(records: list[dict[str, Any]]) -> list[str]:
    names = [record["type"] for record in records]
    return [name for n, name in enumerate(names) if n == 0 or names[n - 1] != name]


def new_epochs(scenario: dict[str, Any], rows: list[dict[str, Any]]) -> dict[int, str]:
    first = {broker.get("epoch", 100 + broker["id"]) for broker in scenario["setup"].get("brokers", [])}
    return {row["epoch"]: f"new-{row['id']}" for row in rows if row["epoch"] not in first}


@pytest.mark.parametrize("name", [n for n, s in SCENARIOS.items() if playable(s) and n not in DEVIATIONS])
def test_the_catalogue(name: str) -> None:
    scenario = SCENARIOS[name]
    runner = Runner(scenario)
    expected_epochs: dict[int, str] = {}
    for number, step in enumerate(scenario["steps"]):
        observed = runner.play(step["event"])
        expect = step["expect"]
        expected_epochs |= new_epochs(scenario, expect.get("brokers", []))
        observed_epochs = new_epochs(scenario, observed["brokers"])
        for key, wanted in expect.items():
            seen = observed.get(key)
            assert normal(seen, observed_epochs, key) == normal(wanted, expected_epochs, key), (name, number, key)
        if "records" in expect:
            assert kinds(observed["records"]) == kinds(expect["records"]), (name, number)


def test_most_of_the_catalogue_is_played() -> None:
    normative = [s for s in SCENARIOS.values() if s["conformance"] == "normative"]
    played = [s for s in normative if playable(s) and s["id"] not in DEVIATIONS]
    assert len(played) >= 93
