"""Files of scenarios, the scenarios that heirlog answers differently on purpose, and one run of a scenario.

With a limit on elections per run, Apache Kafka chooses the first partitions by hash order. So if the setup has
`maxElectionsPerImbalance`, partitions that are equal at the start may be exchanged for each other, in the same way in
all steps.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import islice, permutations
from typing import Any, Final, Protocol

from heirlog.metadata.apply import UnsupportedRecord
from heirlog.protocol.errors import KafkaError
from heirlog.testing.conformance.admin_layer import AdminScenario
from heirlog.testing.conformance.broker_layer import ReplicaScenario
from heirlog.testing.conformance.compare import Comparison
from heirlog.testing.conformance.controller_layer import ControllerScenario
from heirlog.testing.conformance.defaults import completed
from heirlog.testing.conformance.kip_layer import KipScenario
from heirlog.testing.conformance.recovery_layer import RecoveryScenario
from heirlog.testing.conformance.startup_layer import StartupScenario
from heirlog.testing.conformance.vocabulary import UnknownName, check

Scenario = Mapping[str, Any]

MANAGER_ON: Final = ("kip-only", "kip-form")
"""Kinds of conformance that mean the cluster with its recovery manager."""
MAY_DEVIATE: Final = ("shipped-quirk", "ambiguous")
MAY_DEVIATE_BY_ID: Final = ("C133", "C175", "K060", "X004")

_MOST_RENAMINGS: Final = 720
_DOES_NOT_RUN: Final = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    KafkaError,
    UnsupportedRecord,
)
"""What the product raises if a file requires something impossible."""


@dataclass(frozen=True, slots=True)
class Result:
    id: str
    why: str | None
    """What failed first; None if nothing did."""
    observed: list[dict[str, Any]] = field(default_factory=list)
    deviates: bool = False

    @property
    def passed(self) -> bool:
        return self.why is None

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "passed": self.passed, "why": self.why, "observed": self.observed}


class Player(Protocol):
    def play(self, event: Mapping[str, Any]) -> dict[str, Any]: ...


def package_text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def catalogue() -> Mapping[str, Scenario]:
    """The copy in this package, by id."""
    return {scenario["id"]: scenario for scenario in json.loads(package_text("elr-scenarios.json"))["scenarios"]}


@cache
def deviations() -> Mapping[str, list[dict[str, Any]]]:
    """By id the `expect` of every step that heirlog gives instead."""
    found = tomllib.loads(package_text("deviations.toml"))
    return {name: [json.loads(text) for text in entry["expect"]] for name, entry in found.items()}


def may_deviate(scenario: Scenario) -> bool:
    return scenario["conformance"] in MAY_DEVIATE or scenario["id"] in MAY_DEVIATE_BY_ID


def run(scenario: Scenario) -> Result:
    """Play it; what was observed, and the first thing that is not as expected."""
    name = scenario["id"]
    # a deviation applies only to its own scenario, not to another scenario of the same name
    deviates = name in deviations() and scenario == catalogue().get(name)
    expected = [step.get("expect", {}) for step in scenario["steps"]]
    if deviates:
        expected = deviations()[name]
    observed: list[dict[str, Any]] = []
    try:
        check(scenario)
        scenario = completed(scenario)
        player = _player(scenario)
        observed += (player.play(step["event"]) for step in scenario["steps"])
    except UnknownName as error:
        return Result(name, f"unknown or not implemented: {error}", observed, deviates)
    except _DOES_NOT_RUN as error:
        return Result(
            name, f"step {len(observed) + 1} does not run: {type(error).__name__}: {error}", observed, deviates
        )
    differences = [first_difference(scenario, renamed, observed) for renamed in renamings(scenario, expected)]
    why = None if None in differences else differences[0]
    return Result(name, why, observed, deviates)


def _player(scenario: Scenario) -> Player:
    setup, manager = scenario["setup"], scenario.get("conformance") in MANAGER_ON
    match scenario["layer"]:
        case "controller":
            return ControllerScenario(setup, manager=manager)
        case "partition_builder":
            # one change, and no manager that would elect a leader after it
            return ControllerScenario(setup, manager=False, manager_in_builder=manager)
        case "controller_kip":
            return KipScenario(setup)
        case "broker":
            if setup.get("role") == "startup":
                return StartupScenario(setup)
            return ReplicaScenario(setup)
        case "admin":
            return AdminScenario(setup)
        case "recovery":
            return RecoveryScenario(setup)
        case layer:
            raise UnknownName(f"layer {layer} is not implemented")


def first_difference(scenario: Scenario, expected: list[Any], observed: list[dict[str, Any]]) -> str | None:
    """A sentence, or None if every step was as expected."""
    comparison = Comparison(scenario)
    for number, (step, expect, seen) in enumerate(zip(scenario["steps"], expected, observed, strict=True), 1):
        found = comparison.step(step["event"], expect, seen)
        if found:
            return f"step {number}, {step['event']['type']}: {found[0]}"
    return None


def renamings(scenario: Scenario, expected: list[Any]) -> Iterator[list[Any]]:
    """What is expected, and the same under each exchange of partitions that begin equal."""
    yield expected
    if "maxElectionsPerImbalance" not in scenario["setup"]:
        return
    partitions = [(row.get("topic", "foo"), row.get("partition", 0)) for row in scenario["setup"]["partitions"]]
    begin = {
        (row.get("topic", "foo"), row.get("partition", 0)): {
            name: value for name, value in row.items() if name not in ("topic", "partition")
        }
        for row in scenario["setup"]["partitions"]
    }
    for order in islice(permutations(partitions), _MOST_RENAMINGS):
        names = dict(zip(partitions, order, strict=True))
        if all(begin[one] == begin[other] for one, other in names.items()):
            yield [_renamed(expect, names) for expect in expected]


def _renamed(value: Any, names: Mapping[tuple[str, int], tuple[str, int]]) -> Any:
    if isinstance(value, list):
        return [_renamed(member, names) for member in value]
    if not isinstance(value, dict):
        return value
    changed = {name: _renamed(member, names) for name, member in value.items()}
    named = (value.get("topic", "foo"), value.get("partition", -1))
    if named in names:
        changed["topic"], changed["partition"] = names[named]
    return changed
