"""The broker layer of the scenario catalogue, each step on real partitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .scenarios import ReplicaScenario, differences

CATALOGUE = json.loads((Path(__file__).parent / "data" / "elr-scenarios.json").read_text())
SCENARIOS = [
    scenario
    for scenario in CATALOGUE["scenarios"]
    if scenario["layer"] == "broker" and scenario["setup"].get("role") != "startup"
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_a_replica_behaves_as_the_catalogue_says(scenario: dict[str, Any]) -> None:
    replica = ReplicaScenario(scenario["setup"])
    for number, step in enumerate(scenario["steps"], 1):
        observed = replica.play(step["event"])
        assert not differences(step["expect"], observed), f"{scenario['id']} step {number}: {step['event']}"


def test_the_catalogue_holds_the_broker_layer() -> None:
    assert len(SCENARIOS) >= 25
