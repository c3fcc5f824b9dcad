"""The commands against a real cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog, rows
from patience import eventually

from heirlog.cli.connect import _with_ports
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # a clean stop waits until the others' heartbeats say that they know
    with Cluster(nodes=3, config={"broker.heartbeat.interval.ms": 500}) as running:
        yield running


def create(heirlog: Heirlog, cluster: Cluster, *topics: str, partitions: int = 1) -> None:
    assert heirlog("topics", "create", *topics, "--partitions", partitions).code == 0


def piped(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "heirlog", *arguments], input=stdin, capture_output=True, timeout=120)


def described(heirlog: Heirlog, topic: str) -> list[dict[str, Any]]:
    return rows(heirlog, "topics", "describe", topic)


def wait_for(heirlog: Heirlog, topic: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    (row,) = eventually(lambda: [row for row in described(heirlog, topic) if condition(row)])
    return row


def test_a_topic_is_created_listed_described_and_deleted(heirlog: Heirlog, cluster: Cluster) -> None:
    created = heirlog("topics", "create", "life", "--partitions", "2", "--config", "retention.ms=1000", "--json")
    assert created.code == 0, created.err
    (made,) = json.loads(created.out)
    assert (made["topic"], made["partitions"], made["replication_factor"]) == ("life", 2, 3)

    names = [row["topic"] for row in json.loads(heirlog("topics", "list", "--json").out)]
    assert "life" in names

    rows = described(heirlog, "life")
    assert [(row["partition"], sorted(row["replicas"]), row["elr"], row["last_known_elr"]) for row in rows] == [
        (0, [1, 2, 3], [], []),
        (1, [1, 2, 3], [], []),
    ]

    assert heirlog("topics", "delete", "life").code == 0
    gone = heirlog("topics", "describe", "life")
    received = "cannot describe topic life: it does not exist; heirlog topics list shows all topics"
    assert (gone.code, gone.err) == (1, f"heirlog: {received}\n")


def test_the_table_has_a_column_for_each_list_of_replicas(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "table")
    text = heirlog("topics", "describe", "table").out
    assert text.split("\n\n")[1].split("\n")[0].split() == [
        "Topic", "Partition", "Leader", "LeaderEpoch", "Replicas", "Isr", "Elr", "LastKnownElr",
    ]  # fmt: skip


def test_a_partition_after_the_name_of_a_topic_leads_to_the_option(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "addressed")
    assert "the partition with --partition" in heirlog("produce", "addressed:0").err
    assert "the partition with --partition" in heirlog("consume", "addressed:0", "-e").err


def test_describe_shows_what_is_configured_for_a_topic(heirlog: Heirlog, cluster: Cluster) -> None:
    configs = ("-c", "retention.ms=1000", "-c", "cleanup.policy=compact,delete")
    assert heirlog("topics", "create", "special", "-p", "2", "-r", "2", *configs).code == 0
    create(heirlog, cluster, "plain")
    text = heirlog("topics", "describe", "special", "plain").out
    assert [line.split(maxsplit=3) for line in text.split("\n\n")[0].splitlines()] == [
        ["Topic", "PartitionCount", "ReplicationFactor", "Configs"],
        ["plain", "1", "3", "-"],
        ["special", "2", "2", "cleanup.policy=[compact,delete], retention.ms=1000"],
    ]
    found = rows(heirlog, "topics", "describe", "special", "plain", "--at-min-isr-partitions")
    found += rows(heirlog, "topics", "describe", "special")
    assert [(row["partition"], row["partition_count"], row["replication_factor"], row["configs"]) for row in found] == [
        (number, 2, 2, {"cleanup.policy": "compact,delete", "retention.ms": "1000"}) for number in (0, 1, 0, 1)
    ]
    filtered = heirlog("topics", "describe", "special", "--under-replicated-partitions").out
    assert len(filtered.splitlines()) == 1, "the heading of the partitions alone"


@pytest.mark.parametrize(
    ("command", "name"),
    [("topics", "named"), ("groups", "named"), ("transactions", "named"), ("broker", "2"), ("context", "named")],
)
def test_names_alone_are_for_a_loop_of_a_shell(
    heirlog: Heirlog, cluster: Cluster, command: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for line in (
        "topics create named --if-not-exists",
        "groups reset-offsets named named:0 --to-earliest --execute",
        "produce named /dev/null --transactional-id named",
        "context create named -b a:1",
    ):
        made = heirlog(*line.split())
        assert made.code == 0, made.err
    for option in ("-q", "--names"):
        listed = heirlog(command, "list", option)
        assert listed.code == 0 and name in listed.out.splitlines()
        assert not any(" " in line or line.isupper() for line in listed.out.splitlines())
    assert heirlog(command, "list", "-q", "--json").code == 2


def test_describe_follows_the_cursor_over_all_pages(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(heirlog, cluster, "paged-a", "paged-b", partitions=5)
    monkeypatch.setattr("heirlog.client.admin.PAGE_PARTITIONS", 3)
    outcome = heirlog("topics", "describe", "paged-a", "paged-b", "--json")
    found = [(row["topic"], row["partition"]) for row in json.loads(outcome.out)]
    assert found == [(topic, partition) for topic in ("paged-a", "paged-b") for partition in range(5)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["topics", "create", "twice"], "TOPIC_ALREADY_EXISTS"),
        (["topics", "create", "bad/name"], "INVALID_TOPIC_EXCEPTION"),
        (["topics", "create", "many", "--replication-factor", "9"], "INVALID_REPLICATION_FACTOR"),
        (["topics", "create", "odd", "--config", "retention.msec=1"], "INVALID_CONFIG"),
        (["topics", "delete", "nobody"], "does not exist"),
        (["consume", "nobody"], "topic nobody cannot be used"),
        (["consume", "twice", "--partition", "7"], "not 7"),
        (["elect", "--election-type", "preferred", "--topic", "nobody", "--partition", "0"], "topics list shows"),
        (["recover", "plan", "nobody"], "topics list shows"),
    ],
)
def test_what_the_cluster_refuses_is_one_sentence(
    heirlog: Heirlog, cluster: Cluster, arguments: list[str], sentence: str
) -> None:
    heirlog("topics", "create", "twice", "--partitions", "1")
    outcome = heirlog(*arguments)
    assert outcome.code == 1
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_lines_come_back_byte_for_byte(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "lines")
    lines = [b"first", b"", b"\xff\x00 not text", b"last"] + [b"x" * 1000] * 2000
    written = piped("produce", "lines", "--compression", "zstd", stdin=b"\n".join(lines) + b"\n")
    assert written.returncode == 0, written.stderr
    read = piped("consume", "lines", "--from-beginning", "--max", str(len(lines)))
    assert read.returncode == 0, read.stderr
    assert read.stdout.split(b"\n")[:-1] == lines


def test_produce_from_nothing_appends_nothing(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "none")
    done = piped("produce", "none", "--json")
    nothing = {"records": 0, "not_acknowledged": 0, "may_be_stored": 0, "partitions": {}}
    assert json.loads(done.stdout) == {"topic": "none", **nothing}


def test_a_key_chooses_the_partition(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "keyed", partitions=4)
    done = piped("produce", "keyed", "--key-separator", r"\t", "--acks", "1", stdin=b"21\ta\nfoobar\tb\n21\tc\n")
    assert done.returncode == 0, done.stderr
    read = piped("consume", "keyed", "--from-beginning", "--max", "3", "--json")
    records = [json.loads(line) for line in read.stdout.splitlines()]
    places = {(record["key"], record["value"]): record["partition"] for record in records}
    # murmur2 & 0x7fffffff modulo 4, as Java clients place them
    assert places == {("21", "a"): 0, ("21", "c"): 0, ("foobar", "b"): 2}


def test_preferred_leaders_that_lead_already_are_no_failure(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "elected")
    outcome = heirlog("elect", "--election-type", "preferred", "--topic", "elected", "--partition", "0", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)[0]["result"] in ("ELECTED", "ELECTION_NOT_NEEDED")


def test_describe_shows_who_is_eligible_while_the_isr_is_too_small(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "standing")
    first, second, third = described(heirlog, "standing")[0]["replicas"]
    try:
        cluster.stop(third)
        wait_for(heirlog, "standing", lambda row: len(row["isr"]) == 2)
        cluster.stop(second)
        row = wait_for(heirlog, "standing", lambda row: len(row["isr"]) == 1)
        assert (row["leader"], row["isr"], row["elr"]) == (first, [first], [second])
    finally:
        for node in (second, third):
            if node not in cluster.pids:
                cluster.start(node)
        cluster.wait_until_ready()


def test_topics_are_made_and_deleted_whether_they_are_there_or_not(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "there")
    (made,) = rows(heirlog, "topics", "create", "there", "new", "--if-not-exists", "--partitions", "1")
    assert made["topic"] == "new"
    assert [row["topic"] for row in rows(heirlog, "topics", "describe", "absent", "new", "--if-exists")] == ["new"]
    grown = heirlog("topics", "alter", "absent", "new", "--partitions", "2", "--if-exists")
    assert (grown.code, grown.out) == (0, "Topic new has 2 partitions.\n")
    assert len(described(heirlog, "new")) == 2
    assert [row["topic"] for row in rows(heirlog, "topics", "delete", "absent", "new", "--if-exists")] == ["new"]
    assert rows(heirlog, "topics", "delete", "absent", "--if-exists") == []
    assert rows(heirlog, "topics", "create", "there", "--if-not-exists") == []


def test_replicas_are_placed_by_hand(heirlog: Heirlog, cluster: Cluster) -> None:
    assert heirlog("topics", "create", "placed", "--replica-assignment", "3:1,2:3").code == 0
    assert [row["replicas"] for row in described(heirlog, "placed")] == [[3, 1], [2, 3]]
    # as in Kafka's tool: all partitions are named, those that are there stay
    grown = heirlog("topics", "alter", "placed", "--partitions", "3", "--replica-assignment", "1:2,1:2,1:3")
    assert grown.code == 0, grown.err
    assert [row["replicas"] for row in described(heirlog, "placed")] == [[3, 1], [2, 3], [1, 3]]


def test_an_expression_chooses_topics_and_deleting_them_needs_a_yes(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "some-a", "some-b", "awesome-c")
    assert [row["topic"] for row in rows(heirlog, "topics", "list", "--include", "some-.")] == ["some-a", "some-b"]
    assert [row["topic"] for row in rows(heirlog, "topics", "describe", "--include", "some-b")] == ["some-b"]
    internal = heirlog("topics", "delete", "some-1", "__consumer_offsets")
    assert internal.code == 2 and "asks for confirmation" in internal.err and "--yes" in internal.err
    asked = heirlog("topics", "delete", "--include", "some-.")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert len(rows(heirlog, "topics", "delete", "--include", "some-.", "--force")) == 2
    assert heirlog("topics", "describe", "awesome-c").code == 0
    none = heirlog("topics", "delete", "--include", "some-.", "--yes")
    assert (none.code, "no topic matches some-. as a whole" in none.err) == (1, True)
    assert heirlog("topics", "list", "--include", "(").code == 2


def test_what_a_command_is_for_is_an_argument(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "by-name", partitions=2)
    assert heirlog("configs", "alter", "topic", "by-name", "--add-config", "retention.ms=5000").code == 0
    ((name, value),) = [(row["name"], row["value"]) for row in rows(heirlog, "configs", "describe", "topic", "by-name")]
    assert (name, value) == ("retention.ms", "5000")
    assert heirlog("configs", "describe", "brokers").code == 0
    assert heirlog("configs", "describe", "broker", "1", "--all").code == 0
    assert heirlog("configs", "describe", "broker-defaults").code == 0
    elected = rows(heirlog, "elect", "--election-type", "preferred", "by-name")
    assert [row["partition"] for row in elected] == [0, 1]
    assert [row["partition"] for row in rows(heirlog, "elect", "--election-type", "preferred", "by-name:1")] == [1]
    assert {row["topic"] for row in rows(heirlog, "log-dirs", "by-name")} == {"by-name"}
    assert rows(heirlog, "delete-records", "by-name", "--partition", "0", "--offset", "0")[0]["error"] == "NONE"
    assert rows(heirlog, "delete-records", "by-name:1", "--offset", "0")[0]["partition"] == 1
    assert (
        heirlog("configs", "alter", "topic", "by-name", "retention.ms=6000", "cleanup.policy=compact,delete").code == 0
    )
    assert heirlog("configs", "alter", "--topic", "by-name", "segment.ms=7000", "segment.bytes=1048576").code == 0
    found = {row["name"]: row["value"] for row in rows(heirlog, "configs", "describe", "topic", "by-name")}
    assert found == {
        "retention.ms": "6000",
        "cleanup.policy": "compact,delete",
        "segment.ms": "7000",
        "segment.bytes": "1048576",
    }
    assert heirlog("configs", "alter", "broker-defaults", "log.retention.ms=9000000").code == 0
    assert heirlog("configs", "alter", "broker-defaults", "--delete-config", "log.retention.ms").code == 0
    wrong = heirlog("configs", "alter", "topic", "by-name", "retention.ms")
    assert (wrong.code, "retention.ms is not of the form CONFIG=VALUE" in wrong.err) == (2, True)
    preview = heirlog("features", "downgrade", "transaction.version=1", "--dry-run")
    assert preview.out == "transaction.version can be downgraded to 1.\n", preview.err
    unknown = heirlog("transactions", "describe", "nothing")
    assert (unknown.code, "transactional id nothing does not exist" in unknown.err) == (1, True)
    absent = heirlog("broker", "unregister", "9")
    assert (absent.code, "cannot unregister broker 9: BROKER_ID_NOT_REGISTERED" in absent.err) == (1, True)
    running = heirlog("broker", "unregister", "1")
    assert (running.code, running.out) == (2, "")
    assert "broker 1 is running and would register again" in running.err and "give --yes" in running.err
    assert [row["state"] for row in rows(heirlog, "broker", "list")] == ["active"] * len(cluster.brokers)


def test_a_wrong_name_is_answered_with_those_that_are_like_it(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "sentences")
    assert "did you mean sentences? If not, create it: " in heirlog("consume", "sentence", "-e").err
    expression = heirlog("consume", "sent.*[a-z]", "-e").err
    assert "regular expressions go with --include" in expression and "create it" not in expression


def test_a_host_alone_is_at_kafkas_port_and_an_empty_part_is_none() -> None:
    assert _with_ports("localhost, 10.0.0.1,,[::1],b.example:9093,") == (
        "localhost:9092,10.0.0.1:9092,[::1]:9092,b.example:9093"
    )
    # what was meant cannot be known: these are refused where they are read
    assert _with_ports("9092,a b,::1") == "9092,a b,::1"


def test_offsets_are_shown_by_end_and_by_time(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "shown", partitions=2)
    record = b'{"key": null, "value": "v", "timestamp_ms": %d}\n'
    lines = record % 1_000 + record % 5_000 + record % 3_000
    wrote = piped("produce", "shown", "--partition", "1", "--input-format", "json", stdin=lines)
    assert wrote.returncode == 0, wrote.stderr
    assert heirlog("delete-records", "shown", "--partition", "1", "--offset", "1").code == 0
    shown = rows(heirlog, "offsets", "shown")
    both = [(row["partition"], row["earliest"], row["latest"], row["offsets"]) for row in shown]
    assert both == [(0, 0, 0, 0), (1, 1, 3, 2)]

    def at(time: str) -> list[tuple[int | None, int | None]]:
        return [(row["offset"], row["timestamp"]) for row in rows(heirlog, "offsets", "shown:1", "--time", time)]

    assert at("2000") == [(1, 5_000)] == at("1970-01-01T00:00:02") == at("max-timestamp") == at("-3")
    assert rows(heirlog, "offsets", "shown:1", "--timestamp", "2000")[0]["offset"] == 1
    assert at("6000") == [(None, None)] == at("PT1H")
    assert [offset for offset, _ in at("earliest") + at("latest")] == [1, 3]
    assert {row["topic"] for row in rows(heirlog, "offsets", "--include", "show.")} == {"shown"}
    assert "shown" in {row["topic"] for row in rows(heirlog, "offsets")}
    assert "--time soon is not of the form" in heirlog("offsets", "shown", "--time", "soon").err
    assert heirlog("offsets", "shown", "--include", "x").code == 2
    assert heirlog("offsets", "absent").code == 1


def test_a_cluster_is_shown_as_a_whole(heirlog: Heirlog, cluster: Cluster) -> None:
    create(heirlog, cluster, "counted", partitions=4)
    found = json.loads(heirlog("cluster", "info", "--json").out)
    assert found["brokers"] == [1, 2, 3] and found["fenced_brokers"] == []
    assert found["active_controller"] in found["controllers"]
    partitions = rows(heirlog, "topics", "describe")
    assert (found["partitions"], found["without_leader"]) == (len(partitions), 0)
    assert found["topics"] == len(rows(heirlog, "topics", "list", "--exclude-internal"))
    text = heirlog("cluster", "info").out
    assert text.startswith(f"cluster id                       {found['cluster_id']}\n")
