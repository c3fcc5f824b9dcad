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
"""Scenarios whose recorded outcome is upstream's and not ours, with the choice. What heirlog does instead is
tested below, except for the recovery manager's."""

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


def last(name: str) -> dict[str, Any]:
    """What is observed after the last step."""
    runner = Runner(SCENARIOS[name])
    observed: dict[str, Any] = {}
    for step in SCENARIOS[name]["steps"]:
        observed = runner.play(step["event"])
    return observed


def test_c016_each_partition_caps_min_isr_by_its_own_replicas() -> None:
    assert last("C016")["partitions"][1]["elr"] == [3]


def test_c101_the_balancer_moves_every_imbalanced_partition_within_two_runs() -> None:
    assert [partition["leader"] for partition in last("C101")["partitions"]] == [1, 1, 1]


def test_c133_a_completed_reassignment_keeps_no_foreign_replica_in_the_elr() -> None:
    (partition,) = last("C133")["partitions"]
    assert (partition["replicas"], partition["isr"], partition["elr"]) == ([4], [4], [])


def test_c143_a_reassignment_waits_for_a_final_replica_that_can_lead() -> None:
    (partition,) = last("C143")["partitions"]
    assert partition["adding"] == [2, 3] and partition["removing"] == [0, 1]


def test_c181_a_failed_directory_makes_nobody_eligible() -> None:
    runner = Runner(SCENARIOS["C181"])
    (partition,) = runner.play(SCENARIOS["C181"]["steps"][0]["event"])["partitions"]
    assert (partition["isr"], partition["elr"], partition["leader"]) == ([2], [], 2)


def test_c186_a_cleared_elr_does_not_stand_in_the_way_of_a_registration() -> None:
    assert last("C186")["error"] == "NONE"
