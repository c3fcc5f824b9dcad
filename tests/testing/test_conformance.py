"""The scenario catalogue on the product, and a runner that cannot be fooled."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from heirlog.testing.conformance.__main__ import main
from heirlog.testing.conformance.catalogue import (
    Result,
    catalogue,
    deviations,
    first_difference,
    may_deviate,
    package_text,
    renamings,
    run,
)
from heirlog.testing.conformance.compare import Comparison

CATALOGUE = catalogue()
FILE = Path(__file__).parents[2] / "src/heirlog/testing/conformance/elr-scenarios.json"
MORE = Path(__file__).parent / "scenarios/recovery.json"
"""What the catalogue leaves out of recovery: one thing that happens while another one is under way."""


@cache
def played(name: str) -> Result:
    return run(CATALOGUE[name])


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_the_product_answers_as_the_catalogue_says(name: str) -> None:
    result = played(name)
    assert result.passed, result.why
    assert result.deviates == (name in deviations())


def test_the_whole_catalogue_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILE)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{len(deviations())} deviate",
        f"{len(CATALOGUE)} passed, 0 failed",
    ]


def test_recovery_copes_with_whatever_happens_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(MORE)]) == 0, capsys.readouterr().out


def test_only_quirks_and_the_named_choices_deviate() -> None:
    assert [name for name in deviations() if not may_deviate(CATALOGUE[name])] == []
    for name, expected in deviations().items():
        scenario = CATALOGUE[name]
        assert len(expected) == len(scenario["steps"])
        for step, expect in zip(scenario["steps"], expected, strict=True):
            assert set(step["expect"]) <= set(expect)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything that can be altered on its own: plain values, empty lists and nulls."""
    if isinstance(value, dict) and value:
        for name, child in value.items():
            yield from leaves(child, (*path, name))
    elif isinstance(value, list) and value:
        for index, child in enumerate(value):
            yield from leaves(child, (*path, index))
    else:
        yield path


def altered(expects: list[Any], path: tuple[Any, ...]) -> list[Any]:
    changed = list(expects)
    changed[path[0]] = copy.deepcopy(expects[path[0]])
    place: Any = changed
    for name in path[:-1]:
        place = place[name]
    before = place[path[-1]]
    after: Any
    match before:
        case bool():
            after = not before
        case int():
            after = before + 1000
        case str() if path[-1] == "error":
            after = "UNKNOWN_SERVER_ERROR" if before == "NONE" else "NONE"
        case str():
            after = before + "x"
        case list():
            after = [99]
        case _:
            after = {"unheard": "of"} if before is None else None
    place[path[-1]] = after
    return changed


def symbolic(scenario: Any, expects: list[Any], path: tuple[Any, ...]) -> bool:
    """A broker epoch that the run makes, or an error that may be any."""
    value: Any = expects
    for name in path:
        value = value[name]
    if path[-1] in ("epoch", "brokerEpoch"):
        return value not in {broker.get("epoch", 100 + broker["id"]) for broker in scenario["setup"].get("brokers", [])}
    return path[-1] == "error" and " " in str(value)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_altered_expectation_fails(name: str) -> None:
    scenario = CATALOGUE[name]
    result = played(name)
    expects = deviations().get(name) or [step["expect"] for step in scenario["steps"]]
    paths = [path for path in leaves(expects) if len(path) > 1 and not symbolic(scenario, expects, path)]
    assert paths
    for path in paths:
        wrong = altered(expects, path)
        differences = [first_difference(scenario, each, result.observed) for each in renamings(scenario, wrong)]
        assert None not in differences, path


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_altered_copy_of_a_scenario_fails(name: str) -> None:
    scenario = copy.deepcopy(dict(CATALOGUE[name]))
    expects = [step["expect"] for step in scenario["steps"]]
    paths = [path for path in leaves(expects) if len(path) > 1 and not symbolic(scenario, expects, path)]
    for step, expect in zip(scenario["steps"], altered(expects, paths[-1]), strict=True):
        step["expect"] = expect
    assert not run(scenario).passed


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_what_is_observed_does_not_depend_on_what_is_expected(name: str) -> None:
    scenario = copy.deepcopy(dict(CATALOGUE[name]))
    for step in scenario["steps"]:
        step["expect"] = {}
    blind = run(scenario)
    assert blind.passed
    assert blind.observed == played(name).observed
    json.dumps(blind.as_json())
    for step, seen in zip(CATALOGUE[name]["steps"], blind.observed, strict=True):
        assert set(step["expect"]) <= set(seen) or name in deviations()


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("C001", lambda s: s["setup"].update(quorum=3), "setup: quorum"),
        ("C001", lambda s: s["steps"][0]["event"].update(speed=1), "event alter_partition: speed"),
        ("C001", lambda s: s["steps"][0]["event"].update(type="explode"), "event explode"),
        ("C001", lambda s: s["steps"][0]["expect"].update(mood="good"), "expect: mood"),
        ("C001", lambda s: s["setup"]["brokers"][0].update(state="happy"), "broker state happy"),
        ("C001", lambda s: s["setup"].update(partitions="many"), "setup: partitions is"),
        ("C001", lambda s: s.update(layer="attic"), "layer attic"),
        ("K002", lambda s: s["setup"].update(colour="red"), "setup: colour"),
    ],
)
def test_a_name_outside_the_vocabulary_fails_by_name(name: str, change: Any, why: str) -> None:
    scenario = copy.deepcopy(dict(CATALOGUE.get(name, next(iter(CATALOGUE.values())))))
    change(scenario)
    result = run(scenario)
    assert result.why is not None and why in result.why


@pytest.mark.parametrize(
    ("asked", "expect"),
    [
        ({"topics": []}, {"result": [["a", [0, 1]], ["c", [0]]], "errors": [], "nextCursor": None}),
        (
            {"topics": ["c", "b", "nope", "a"]},
            {
                "result": [["a", [0, 1]], ["c", [0]]],
                "errors": [["nope", "UNKNOWN_TOPIC_OR_PARTITION"], ["b", "TOPIC_AUTHORIZATION_FAILED"]],
            },
        ),
        # the next page begins at what one may see
        ({"topics": [], "limit": 2}, {"result": [["a", [0, 1]]], "nextCursor": ["c", 0]}),
        ({"topics": [], "cursor": ["b", 0]}, {"result": [["c", [0]]], "errors": []}),
        ({"topics": ["b"]}, {"result": [], "errors": [["b", "TOPIC_AUTHORIZATION_FAILED"]], "nextCursor": None}),
        ({"topics": ["b"], "cursor": ["a", 0]}, {"error": "INVALID_REQUEST"}),
    ],
)
def test_topics_that_may_not_be_described_are_hidden_or_refused(asked: Any, expect: Any) -> None:
    topics = [{"name": "a", "partitions": 2}, {"name": "b", "partitions": 1}, {"name": "c", "partitions": 1}]
    event = {"type": "describe_topic_partitions", **asked}
    scenario = {"id": "denied", "layer": "admin", "setup": {"topics": topics, "denied": ["b"]}}
    result = run({**scenario, "steps": [{"event": event, "expect": expect}]})
    assert result.passed, result.why


FOLLOWER = {"localBroker": 2, "role": "follower", "leader": 1, "leaderEpoch": 9, "logEndOffset": 20, "highWatermark": 5}
LEADER = {"localBroker": 1, "replicas": [1, 2], "isr": [1, 2], "leaderEpoch": 5, "logEndOffset": 10, "highWatermark": 8}


@pytest.mark.parametrize(
    ("setup", "steps"),
    [
        # the cache of the file, and not an epoch of the records before it: everything the log knows is newer
        (
            FOLLOWER | {"epochCache": [{"epoch": 5, "start": 8}]},
            [({"type": "fetch_response", "divergingEpoch": {"epoch": 3, "endOffset": 6}}, {"truncateTo": 6})],
        ),
        (
            LEADER,
            [
                ({"type": "consumer_fetch", "fetchOffset": 5}, {"records": 3, "highWatermark": 8}),
                ({"type": "append", "records": 4, "acks": 1}, {"logEndOffset": 14, "produceError": None}),
                ({"type": "follower_fetch", "broker": 2, "fetchOffset": 14}, {"highWatermark": 14}),
                # in the middle of the batch of four
                ({"type": "consumer_fetch", "fetchOffset": 12}, {"records": 2, "pending": None}),
            ],
        ),
        (
            {"role": "startup", "logDirs": [{"dir": "a", "file": '{"version":0,"brokerEpoch":5}'}]},
            [
                ({"type": "start"}, {"registrationPreviousBrokerEpoch": 5}),
                ({"type": "register_response", "brokerEpoch": 9}, {}),
                ({"type": "controlled_stop"}, {"fileContent": {"version": 0, "brokerEpoch": 9}}),
                ({"type": "start"}, {"registrationPreviousBrokerEpoch": 9}),
                # a start that is not registered leaves a clean stop as it was
                ({"type": "logs_loaded"}, {"fileStillPresent": True}),
                ({"type": "start"}, {"registrationPreviousBrokerEpoch": 9}),
                ({"type": "register_response", "brokerEpoch": 12}, {"fileStillPresent": False}),
                # nobody has stopped it
                ({"type": "start"}, {"registrationPreviousBrokerEpoch": -1}),
            ],
        ),
    ],
)
def test_broker_scenarios_beside_the_catalogue(setup: Any, steps: Any) -> None:
    played = [{"event": event, "expect": expect} for event, expect in steps]
    result = run({"id": "beside", "layer": "broker", "setup": setup, "steps": played})
    assert result.passed, result.why


def controller_setup(brokers: str, partitions: list[Any], min_isr: str = "2", **more: Any) -> dict[str, Any]:
    """`brokers`: a letter for each, from 1 on: u unfenced, f fenced, c in controlled shutdown."""
    states = {"u": "unfenced", "f": "fenced", "c": "controlled_shutdown"}
    defaults = {"leaderEpoch": 10, "partitionEpoch": 20, "elr": [], "lastKnownElr": []}
    return {
        "features": {"eligible.leader.replicas.version": 1, "metadata.version": 29},
        "config": {"cluster": {"min.insync.replicas": min_isr}},
        "brokers": [{"id": number, "state": states[state]} for number, state in enumerate(brokers, 1)],
        "partitions": [defaults | partition for partition in partitions],
        **more,
    }


FOO = [{"topic": "foo", "partition": 0}]


@pytest.mark.parametrize(
    ("setup", "event", "expect"),
    [
        (
            # the balancer takes leaderless partitions along: here the last known leader is back
            controller_setup("uuu", [{"replicas": [2, 1], "isr": [], "leader": -1, "lastKnownElr": [2]}]),
            {"type": "periodic", "task": "electPreferred"},
            {
                "records": [
                    {
                        "type": "PartitionChangeRecord",
                        "version": 2,
                        "topic": "foo",
                        "partition": 0,
                        "isr": [2],
                        "lastKnownElr": [],
                        "leader": 2,
                        "leaderRecoveryState": 1,
                    }
                ],
                "response": {"rescheduleImmediately": False},
            },
        ),
        (
            # the limit is reached, though nothing is left to do
            controller_setup("uu", [{"replicas": [1, 2], "isr": [1, 2], "leader": 2}], maxElectionsPerImbalance=1),
            {"type": "periodic", "task": "electPreferred"},
            {"response": {"rescheduleImmediately": True}},
        ),
        (
            # not the preferred replica, but a leader
            controller_setup(
                "fuu", [{"replicas": [1, 2, 3], "isr": [], "leader": -1, "elr": [2], "lastKnownElr": [1]}]
            ),
            {"type": "elect_leaders", "electionType": 0, "partitions": FOO},
            {"response": [{"topic": "foo", "partition": 0, "error": "NONE"}]},
        ),
        (
            controller_setup("uu", [{"replicas": [1, 2], "isr": [1, 2], "leader": 1}]),
            {"type": "elect_leaders", "electionType": 9, "partitions": []},
            {"error": "NONE", "response": [], "records": []},
        ),
        (
            # nobody remembers when its shutdown began: it leads nothing, so it may go
            controller_setup("ucu", [{"replicas": [1, 2, 3], "isr": [1, 3], "leader": 1}]),
            {"type": "heartbeat", "broker": 2, "wantShutDown": True},
            {"response": {"isCaughtUp": True, "isFenced": True, "shouldShutDown": True}},
        ),
        (
            controller_setup("ucu", [{"replicas": [1, 2, 3], "isr": [1, 3], "leader": 1}]),
            {"type": "heartbeat", "broker": 2},
            {"response": {"isCaughtUp": True, "isFenced": False, "shouldShutDown": False}, "records": []},
        ),
        (
            controller_setup("u", [{"replicas": [1], "isr": [1], "leader": 1}]),
            {"type": "update_feature", "feature": "eligible.leader.replicas.version", "level": 1, "upgradeType": 1},
            {
                "records": [
                    {
                        "type": "FeatureLevelRecord",
                        "version": 0,
                        "name": "eligible.leader.replicas.version",
                        "featureLevel": 1,
                    }
                ]
            },
        ),
        (
            controller_setup("u", [{"replicas": [1], "isr": [1], "leader": 1}]),
            {
                "type": "alter_config",
                "resourceType": "broker",
                "resourceName": "",
                "op": "DELETE",
                "name": "unclean.leader.election.enable",
            },
            {
                "records": [
                    {
                        "type": "ConfigRecord",
                        "version": 0,
                        "resourceType": 4,
                        "resourceName": "",
                        "name": "unclean.leader.election.enable",
                        "value": None,
                    }
                ]
            },
        ),
    ],
)
def test_controller_scenarios_beside_the_catalogue(setup: Any, event: Any, expect: Any) -> None:
    """Results of Apache Kafka 4.2's own QuorumController."""
    result = run({"id": "beside", "layer": "controller", "setup": setup, "steps": [{"event": event, "expect": expect}]})
    assert result.passed, result.why


def test_a_reassignment_waits_for_every_final_replica_with_kafkas_rules_and_for_the_new_ones_with_the_manager() -> None:
    moving = {"replicas": [1, 2, 4, 3], "isr": [1, 3], "leader": 1, "adding": [4], "removing": [3]}
    steps = [{"event": {"type": "alter_partition", "broker": 1, "newIsr": [1, 3, 4]}}]
    scenario = {"id": "beside", "layer": "controller", "setup": controller_setup("uuuu", [moving]), "steps": steps}
    isrs = [
        [partition["isr"] for partition in run(scenario | {"conformance": kind}).observed[0]["partitions"]]
        for kind in ("version-dependent", "kip-only")
    ]
    assert isrs == [[[1, 3, 4]], [[1, 4]]]


@pytest.mark.parametrize(("level", "records"), [(11, [[2, 1, 1]]), (12, [[2, 1, None]])])
def test_below_3_6_whoever_leaves_the_isr_costs_a_leader_epoch(level: int, records: Any) -> None:
    setup = controller_setup("uuu", [{"replicas": [2, 1, 3], "isr": [2, 1, 3], "leader": 1}])
    setup["features"] = {"eligible.leader.replicas.version": 0, "metadata.version": level}
    event = {"type": "partition_change", "election": "ONLINE", "targetIsr": [2, 1], "acceptableLeaders": [1, 2]}
    scenario = {"id": "beside", "layer": "partition_builder", "setup": setup, "steps": [{"event": event}]}
    (seen,) = run(scenario).observed
    assert [[*record["isr"], record.get("leader")] for record in seen["records"]] == records


def test_of_one_change_that_is_built_no_manager_makes_two() -> None:
    setup = controller_setup("uuu", [{"replicas": [1, 2, 3], "isr": [1], "leader": 1}])
    event = {"type": "partition_change", "targetIsr": [], "acceptableLeaders": [], "useLastKnownLeader": False}
    scenario = {"id": "beside", "layer": "partition_builder", "setup": setup, "steps": [{"event": event}]}
    (seen,) = run(scenario | {"conformance": "kip-form"}).observed
    assert [record["leader"] for record in seen["records"]] == [-1]


def test_the_json_report_names_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILE), "--layer", "admin", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [set(result) for result in results] == [{"id", "passed", "why", "observed"}] * 7
    assert main([str(FILE), "--id", "R001", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert [step["action"] for step in result["observed"]] == ["query", "wait", "wait", "elect"]


@pytest.mark.parametrize("text", ["{}", "[]", "nonsense", '{"scenarios": [{"id": "C001"}]}'])
def test_what_is_no_file_of_scenarios_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenarios.json"
    file.write_text(text)
    with pytest.raises(SystemExit):
        main([str(file)])


def test_a_broker_epoch_that_the_run_made_is_new_and_the_same_everywhere() -> None:
    comparison = Comparison({"layer": "controller", "setup": {"brokers": [{"id": 1}]}})
    event = {"type": "heartbeat", "broker": 1}
    seen = {"brokers": [{"id": 1, "epoch": "new", "state": "fenced"}]}

    def differs(epoch: int) -> bool:
        return bool(comparison.step(event, {"brokers": [{"id": 1, "epoch": epoch, "state": "fenced"}]}, seen))

    assert differs(101)
    assert not differs(4711)
    assert differs(4712)


def test_the_files_of_the_runner_are_in_the_package() -> None:
    assert json.loads(package_text("vocabulary.json"))["recovery"]
