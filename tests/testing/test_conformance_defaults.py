"""Every member of a scenario file is optional: the whole vocabulary, each member absent and present."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from heirlog.testing.conformance.catalogue import catalogue, run
from heirlog.testing.conformance.defaults import completed
from heirlog.testing.conformance.vocabulary import LAYERS

Path = tuple[str | int, ...]

NEEDS_ONE_BEFORE = {
    "alter_partition_response": "no request waits",
    "register_response": "before a start",
}
"""Events that answer something; alone they are refused with a sentence."""
WORDS = {
    "leaderRecoveryState": "RECOVERED",
    "error": "NONE",
    "state": "unfenced",
    "role": "leader",
    "file": '{"version":0,"brokerEpoch":5}',
    "op": "SET",
    "resourceType": "topic",
    "name": "min.insync.replicas",
    "task": "electUnclean",
    "incarnation": "same",
    "clusterId": "conformance",
    "feature": "eligible.leader.replicas.version",
    "election": "ONLINE",
    "strategy": "Balanced",
    "unclean.recovery.strategy": "Balanced",
    "unclean.leader.election.enable": "true",
    "tool": "UNCLEAN",
    "value": "1",
    "topic": "foo",
    "topicName": "foo",
}
"""Where not every text means something."""


def does_not_run(scenario: Mapping[str, Any]) -> str | None:
    """Why, unless an event answers something that this scenario does not ask."""
    why = run(scenario).why or ""
    if any(sentence in why for sentence in (*NEEDS_ONE_BEFORE.values(), "of a replica that leads")):
        return None
    return why if "does not run" in why or "unknown" in why else None


def alone(layer: str, kind: str, **members: Any) -> Mapping[str, Any]:
    return {"id": "alone", "layer": layer, "setup": {}, "steps": [{"event": {"type": kind, **members}}]}


EVENTS = [(layer, kind) for layer, words in LAYERS.items() for kind in words["events"]]


@pytest.mark.parametrize(("layer", "kind"), EVENTS)
def test_an_event_runs_without_setup_and_members(layer: str, kind: str) -> None:
    assert does_not_run(alone(layer, kind)) is None


def sample(name: str, kind: str) -> Any:
    """A value of that kind for that member."""
    first = kind.split("/")[-1] if kind.startswith("[]/") else kind.split("/")[0]
    if name == "cursor":
        return ["foo", 0]
    samples = {"int": 1, "bool": True, "str": WORDS.get(name, "foo"), "null": WORDS.get(name), "{}": {}, "[]": []}
    samples |= {"[int]": [1, 2], "[{}]": [{}], "[[int]]": [[1, 2]], "[str]": ["foo"], "[int|str]": ["foo", 0]}
    return samples[first]


MEMBERS = [
    (layer, kind, path)
    for layer, words in LAYERS.items()
    for kind, members in words["events"].items()
    for path in members
]


@pytest.mark.parametrize(("layer", "kind", "path"), MEMBERS)
def test_each_member_of_an_event_may_be_there_alone(layer: str, kind: str, path: str) -> None:
    value = sample(path.rpartition(".")[2] if path not in WORDS else path, LAYERS[layer]["events"][kind][path])
    if path not in WORDS:
        # from the inside: newIsr[].epoch is one member that has only this one
        for part in reversed(path.split(".")[1:] if path.count(".") == 1 and "values" not in path else ()):
            value = {part: value}
        if "values." in path:
            value = {path.partition(".")[2]: "1"}
        if "configs." in path:
            value = {path.partition(".")[2]: "1"}
    outer = path if path in WORDS else path.split(".")[0]
    given = {outer.removesuffix("[]"): [value] if outer.endswith("[]") else value}
    assert does_not_run(alone(layer, kind, **given)) is None


def sites(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            yield from sites(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from sites(inner, (*path, number))


def without(scenario: Mapping[str, Any], path: Path) -> dict[str, Any]:
    changed: Any = copy.deepcopy(dict(scenario))
    place = changed
    for part in path[:-1]:
        place = place[part]
    del place[path[-1]]
    return dict(changed)


def removals() -> Iterator[tuple[str, Path]]:
    """For each member of a setup or an event that the catalogue uses: a scenario that loses it."""
    seen = set()
    for name, scenario in catalogue().items():
        paths = [("setup", *path) for path in sites(scenario["setup"])]
        for number, step in enumerate(scenario["steps"]):
            paths += [("steps", number, "event", *path) for path in sites(step["event"]) if path != ("type",)]
        for path in paths:
            kind = scenario["steps"][path[1]]["event"]["type"] if path[0] == "steps" else "setup"
            member = (scenario["layer"], kind, *(part for part in path if isinstance(part, str)))
            if member not in seen and not isinstance(path[-1], int):
                seen.add(member)
                yield name, path


@pytest.mark.parametrize(("name", "path"), list(removals()))
def test_a_scenario_runs_without_any_one_member(name: str, path: Path) -> None:
    assert does_not_run(without(catalogue()[name], path)) is None


def test_what_is_not_said_of_followers_is_what_the_leader_begins_with() -> None:
    setup = {"localBroker": 1, "replicas": [1, 2, 3], "logEndOffset": 10, "followers": [{"id": 2}, {}]}
    steps = [
        {"event": {"type": "follower_fetch", "broker": 2, "fetchOffset": 10}, "expect": {"followerLeo": 10}},
        # the ISR is everybody, and of broker 3 the leader knows nothing yet
        {"event": {"type": "read_gauges"}, "expect": {"highWatermark": 10, "isr": [1, 2, 3]}},
    ]
    result = run({"id": "followers", "layer": "broker", "setup": setup, "steps": steps})
    assert result.passed, result.why


def test_what_is_said_is_never_replaced() -> None:
    for scenario in catalogue().values():
        filled = completed(scenario)
        for path in sites(scenario["setup"]):
            found, wanted = filled["setup"], scenario["setup"]
            for part in path:
                found, wanted = found[part], wanted[part]
            assert isinstance(wanted, dict | list) or found == wanted, (scenario["id"], path)
        for given, made in zip(scenario["steps"], filled["steps"], strict=True):
            assert given["event"].items() <= made["event"].items()
