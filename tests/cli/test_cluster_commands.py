"""Reassignment, features and brokers against a real cluster, and which partitions `topics describe` picks out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Heirlog, rows
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli import cluster as cluster_command
from heirlog.cli import connect, quorum, waiting
from heirlog.cli.connect import connected
from heirlog.cli.errors import CommandError
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")

ELR = "eligible.leader.replicas.version"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=3) as running:
        yield running


def create(cluster: Cluster, name: str, *assignment: list[int], **configs: str) -> str:
    replicas = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in enumerate(assignment)
    ]
    values = [
        CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=replicas, configs=values
    )
    with Client(cluster.bootstrap_servers) as client:
        (answer,) = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
    assert not answer.error_code, answer.error_message
    return name


def plan(tmp_path: Path, topic: str, *assignment: list[int]) -> str:
    partitions = [{"topic": topic, "partition": index, "replicas": brokers} for index, brokers in enumerate(assignment)]
    path = tmp_path / f"{topic}.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_replicas_are_moved_as_generated_and_the_throttle_is_lifted_at_the_end(
    heirlog: Heirlog, cluster: Cluster, tmp_path: Path
) -> None:
    topic = create(cluster, "moved", [1, 2], [2, 1])
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"topics": [{"topic": topic}], "version": 1}))
    generated = heirlog("reassign", "--generate", "--topics-to-move-json-file", str(wanted), "--broker-list", "2,3")
    current, proposed = (json.loads(line) for line in generated.out.splitlines() if line.startswith("{"))
    assert [entry["replicas"] for entry in current["partitions"]] == [[1, 2], [2, 1]]
    assert all(sorted(entry["replicas"]) == [2, 3] for entry in proposed["partitions"])
    (tmp_path / "plan.json").write_text(json.dumps(proposed))
    file = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    begun = heirlog("reassign", "--execute", *file, "--throttle", "1000000")
    assert begun.code == 0, begun.err
    assert "Successfully started partition reassignments for moved-0,moved-1" in begun.out
    assert json.dumps(current, separators=(",", ":")) in begun.out, "what to go back to"
    eventually(lambda: {row["state"] for row in rows(heirlog, "reassign", "--verify", *file)} == {"completed"})
    moved = [entry["replicas"] for entry in proposed["partitions"]]
    eventually(lambda: [row["replicas"] for row in rows(heirlog, "topics", "describe", topic)] == moved)
    eventually(lambda: not rows(heirlog, "configs", "describe", "--topic", topic))
    eventually(lambda: not rows(heirlog, "configs", "describe", "--broker", "2"))
    assert heirlog("reassign", "--list").out == "No partition reassignments found.\n"
    assert heirlog("reassign", "--cancel", *file).out == "None of the specified partition reassignments are active.\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not of the form"),
        ('{"partitions": [{"topic": "t", "partition": "0", "replicas": [1]}]}', "is not of the form"),
        ('{"partitions": []}', "names no partition"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}', "name a broker twice"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "not a list of broker ids"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/x"]}]}', "log_dirs"),
        (json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}] * 2}), "names t-0 twice"),
    ],
)
def test_an_assignment_that_is_none_is_told_what_is_wrong_with_it(
    heirlog: Heirlog, tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    refused = heirlog("reassign", "--execute", "--reassignment-json-file", str(path))
    assert refused.code == 1 and reason in refused.err and refused.err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("--list", "--verify"),
        ("--execute",),
        ("--generate", "--topics-to-move-json-file", "x"),
        ("--generate", "--topics-to-move-json-file", "x", "--broker-list", "1,x"),
        ("--generate", "--topics-to-move-json-file", "x", "--broker-list", "1,1"),
    ],
)
def test_a_reassignment_is_asked_for_in_one_way(heirlog: Heirlog, wrong: tuple[str, ...]) -> None:
    assert heirlog("reassign", *wrong).code == 2


def test_what_cannot_be_moved_says_so(heirlog: Heirlog, cluster: Cluster, tmp_path: Path) -> None:
    topic = create(cluster, "fixed", [1, 2])
    missing = heirlog("reassign", "--execute", "--reassignment-json-file", plan(tmp_path, "nowhere", [1]))
    assert missing.code == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in missing.err and "topics list" in missing.err
    stranger = heirlog("reassign", "--execute", "--reassignment-json-file", plan(tmp_path, topic, [1, 9]))
    assert stranger.code == 1 and "INVALID_REPLICA_ASSIGNMENT" in stranger.err and "broker list" in stranger.err
    file = ("--reassignment-json-file", plan(tmp_path, topic, [1, 2, 3]))
    fixed = heirlog("reassign", "--execute", *file, "--disallow-replication-factor-change")
    assert fixed.code == 1 and "INVALID_REPLICATION_FACTOR" in fixed.err
    verified = heirlog("reassign", "--verify", *file)
    assert verified.code == 0 and "but replica set is 1,2 rather than 1,2,3." in verified.out
    absent = heirlog("reassign", "--verify", "--reassignment-json-file", plan(tmp_path, "nowhere", [1]))
    assert absent.code == 1 and "There is no partition nowhere-0." in absent.out and "does not exist" in absent.err


def test_levels_are_described_and_changed(heirlog: Heirlog) -> None:
    def level() -> int:
        return {row["feature"]: int(row["level"]) for row in rows(heirlog, "features", "describe")}[ELR]

    assert level() == 1
    assert "4.2-IV1" in heirlog("features", "describe").out
    assert rows(heirlog, "features", "describe", "--node-id", "2")
    dry = heirlog("features", "disable", "--feature", ELR, "--dry-run")
    assert (dry.code, dry.out) == (0, f"{ELR} can be disabled to 0.\n") and level() == 1
    done = heirlog("features", "downgrade", "--feature", f"{ELR}=0")
    assert (done.code, done.out) == (0, f"{ELR} was downgraded to 0.\n"), done.err
    eventually(lambda: level() == 0)
    raised = heirlog("features", "upgrade", "--release-version", "4.2")
    assert raised.code == 0 and f"{ELR} was upgraded to 1." in raised.out, raised.err
    assert "recovery" not in raised.err
    eventually(lambda: level() == 1)
    recovery = "heirlog.recovery.version"
    assert heirlog("features", "downgrade", f"{recovery}=0").code == 0
    eventually(lambda: f"heirlog features upgrade {recovery}=1" in heirlog("features", "upgrade", f"{ELR}=1").err)
    assert heirlog("features", "upgrade", f"{recovery}=1").err == ""
    again = heirlog("features", "upgrade", "--release-version", "4.2", "--dry-run")
    assert f"{ELR} is at 1 already." in again.out and "metadata.version is at 4.2-IV1 already." in again.out
    refused = heirlog("features", "upgrade", "--feature", f"{ELR}=7")
    assert refused.code == 1 and "INVALID_UPDATE_VERSION" in refused.err and "features describe" in refused.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("upgrade",),
        ("upgrade", "--feature", "x"),
        ("upgrade", "--feature", "x=y"),
        ("upgrade", "--feature", "metadata.version=9.9"),
        ("upgrade", "--release-version", "0.1"),
        ("downgrade", "--feature", f"{ELR}=0", "--metadata", "4.1"),
        ("disable",),
    ],
)
def test_levels_are_named_in_one_way(heirlog: Heirlog, wrong: tuple[str, ...]) -> None:
    assert heirlog("features", *wrong).code == 2


def test_a_broker_that_is_gone_for_good(heirlog: Heirlog, cluster: Cluster) -> None:
    """Last in this file: afterwards the cluster has two brokers."""
    create(cluster, "short", [1, 3], min_insync_replicas="2")
    create(cluster, "spare", [1, 2, 3], min_insync_replicas="2")
    create(cluster, "dark", [3], min_insync_replicas="1")
    create(cluster, "few", [1, 2], min_insync_replicas="3")
    running = heirlog("broker", "unregister", "--id", "8")
    assert running.code == 1 and "broker list" in running.err
    for option in ("under-replicated", "unavailable", "under-min-isr"):
        assert rows(heirlog, "topics", "describe", f"--{option}-partitions", "--exclude-internal") == []
    for named in (("log-dirs", "shrt"), ("recover", "report", "shrt")):
        assert heirlog(*named).code == 1
    cluster.kill(3)
    eventually(lambda: {row["broker"]: row["state"] for row in rows(heirlog, "broker", "list")}.get(3) == "fenced")

    everywhere = heirlog("log-dirs", "spare")
    assert everywhere.code == 1 and len(everywhere.out.splitlines()) == 3 and "broker 3 is fenced" in everywhere.err
    dirs = heirlog("log-dirs", "spare", "--broker-list", "1,3,2")
    assert dirs.code == 1 and len(dirs.out.splitlines()) == 3 and "broker 3 did not answer" in dirs.err

    def shown(option: str) -> set[str]:
        described = rows(heirlog, "topics", "describe", f"--{option}-partitions")
        return {row["topic"] for row in described} & {"short", "spare", "dark", "few"}

    eventually(lambda: shown("unavailable") == {"dark"})
    eventually(lambda: shown("under-replicated") == {"short", "spare", "dark"})
    eventually(lambda: shown("under-min-isr") == {"short", "dark"})
    # of min.insync.replicas no more counts than a partition has replicas
    eventually(lambda: shown("at-min-isr") == {"spare", "few"})
    assert heirlog("topics", "describe", "--unavailable-partitions", "--at-min-isr-partitions").code == 2

    same = heirlog("configs", "alter", "--topic", "short", "--add-config", "min.insync.replicas=2")
    assert (same.code, same.err) == (0, ""), "the value that is there changes nothing"
    changed = heirlog("configs", "alter", "--topic", "short", "--add-config", "min.insync.replicas=1")
    assert changed.code == 0 and "warning" in changed.err and "short-0" in changed.err
    assert "dark" not in changed.err
    gone = heirlog("broker", "unregister", "--id", "3")
    assert (gone.code, gone.out) == (0, "Broker 3 is no longer registered.\n")
    assert "dark-0" in gone.err and "unclean election" in gone.err
    assert "have a replica on broker 3, and are under-replicated" in gone.err and "heirlog reassign" in gone.err
    eventually(lambda: [row["broker"] for row in rows(heirlog, "broker", "list")] == [1, 2])


# the quorum


def test_the_quorum_has_its_voter_and_an_observer_for_each_broker(heirlog: Heirlog, cluster: Cluster) -> None:
    status = json.loads(heirlog("quorum", "describe", "--json").out)
    assert (status["leader_id"], status["max_follower_lag"]) == (100, 0)
    (voter,) = status["current_voters"]
    assert voter["id"] == 100 and voter["directoryId"]
    assert voter["endpoints"][0].startswith("CONTROLLER://127.0.0.1:")
    assert sorted(observer["id"] for observer in status["current_observers"]) == [1, 2, 3]
    printed = heirlog("quorum", "describe", "--status").out
    assert printed.count(quorum.SILENT) == 0 and len(printed.splitlines()) == 8 + 2, "a line for each node"
    assert [line.split()[0] for line in printed.splitlines() if not line.startswith(" ")] == [
        "ClusterId:",
        "LeaderId:",
        "LeaderEpoch:",
        "HighWatermark:",
        "MaxFollowerLag:",
        "MaxFollowerLagTimeMs:",
        "CurrentVoters:",
        "CurrentObservers:",
    ]


def test_the_replication_of_the_metadata_is_a_row_for_each_node(heirlog: Heirlog, cluster: Cluster) -> None:
    replicas = json.loads(heirlog("quorum", "describe", "--replication", "--json").out)
    assert (replicas[0]["node_id"], replicas[0]["status"]) == (100, "Leader")
    assert {replica["node_id"]: replica["status"] for replica in replicas[1:]} == {
        1: "Observer",
        2: "Observer",
        3: "Observer",
    }
    assert replicas[0]["lag"] == 0 and replicas[0]["log_end_offset"] > 0
    heading, leader, *_ = heirlog("quorum", "describe", "--replication", "--human-readable").out.splitlines()
    assert (
        heading.startswith("NodeId") and " ms ago " in leader and str(replicas[0]["last_fetch_timestamp"]) not in leader
    )
    for others in (["--status"], [], ["--replication", "--json"]):
        assert heirlog("quorum", "describe", "--human-readable", *others).code == 2


def test_the_address_of_a_controller_is_not_taken_for_a_broker(heirlog: Heirlog) -> None:
    (voter,) = json.loads(heirlog("quorum", "describe", "--json").out)["current_voters"]
    refused = heirlog("topics", "list", "-b", voter["endpoints"][0].removeprefix("CONTROLLER://"))
    assert refused.code == 1 and "perhaps it is a controller" in refused.err and "start the cluster" not in refused.err


def test_a_request_that_waits_for_the_controller_does_not_blame_the_broker_alone(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> None:
        with connected(cluster.bootstrap_servers, timeout_s=1.0) as client:
            quorum.described(client)

    cluster.pause(100)
    try:
        with pytest.raises(CommandError, match=r"no controller is active: broker . had no answer from "):
            asked()
        monkeypatch.setattr(connect, "DIAGNOSIS_TIMEOUT_S", 0.1)
        with pytest.raises(CommandError, match=r"timed out; .* quorum describe --bootstrap-controller"):
            asked()
        monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.2)
        monkeypatch.setattr(cluster_command, "QUORUM_TIMEOUT_S", 1.0)
        shown = heirlog("cluster", "info")
    finally:
        cluster.resume(100)
    assert shown.code == 0 and "controllers                      none answers" in shown.out
    assert shown.err.startswith("no answer for ")


def test_the_two_views_of_the_quorum_exclude_each_other(heirlog: Heirlog, cluster: Cluster) -> None:
    refused = heirlog("quorum", "describe", "--status", "--replication")
    assert refused.code == 2
    assert "--status and --replication exclude each other" in refused.err
