"""`heirlog consume`: where it begins and ends, what it writes, and as a member of a group."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog, rows, stderr
from confluent_kafka import Consumer
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli import record_reader, waiting
from heirlog.cli.record_reader import Reader, topic_ids
from heirlog.cli.waiting import Saying, once
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import DeleteRecordsRequest
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")

CONSUME = [sys.executable, "-m", "heirlog", "consume"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, config={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


def write(cluster: Cluster, topic: str, *values: str, partition: int = 0, partitions: int = 1) -> None:
    run = [sys.executable, "-m", "heirlog"]
    subprocess.run([*run, "topics", "create", topic, "--partitions", str(partitions)], capture_output=True, timeout=60)
    lines = "".join(f"{value}\n" for value in values).encode()
    produce = [*run, "produce", topic, "--partition", str(partition)]
    subprocess.run(produce, input=lines, capture_output=True, timeout=60, check=True)


def lines(heirlog: Heirlog, *arguments: str) -> list[str]:
    outcome = heirlog("consume", *arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out.splitlines()


@pytest.fixture(scope="module")
def five(cluster: Cluster) -> str:
    """Two partitions: five records, and two."""
    write_to = {"HEIRLOG_BOOTSTRAP": cluster.bootstrap_servers}
    with pytest.MonkeyPatch.context() as patched:
        for name, value in write_to.items():
            patched.setenv(name, value)
        write(cluster, "five", "a", "b", "c", "d", "e", partitions=2)
        write(cluster, "five", "x", "y", partition=1)
    return "five"


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["-e"], "abcdexy"),
        (["--until-end", "--from-beginning"], "abcdexy"),
        (["-e", "-p", "1"], "xy"),
        (["-e", "-p", "1", "-p", "0"], "xyabcde"),
        (["-e", "--offset", "1"], "bcdey"),
        (["-e", "-o", "earliest"], "abcdexy"),
        (["-e", "-o", "end"], ""),
        (["-e", "-o", "-1"], "ey"),
        (["-e", "--last", "2"], "dexy"),
        (["-e", "--last", "99", "-c", "6"], "abcdex"),
        (["-e", "--timestamp", "PT1H"], "abcdexy"),
        (["-e", "--timestamp", "2099-01-01T00:00:00"], ""),
        (["-e", "--timestamp", "0"], "abcdexy"),
        (["-e", "-o", "s@4070908800000"], ""),
        (["-e", "-o", "start", "-n", "2"], "ab"),
    ],
)
def test_it_begins_and_ends_where_it_is_told_to(heirlog: Heirlog, five: str, arguments: list[str], values: str) -> None:
    assert "".join(lines(heirlog, five, *arguments)) == values


def test_the_words_of_other_tools_are_understood(heirlog: Heirlog, cluster: Cluster) -> None:
    """kcat's and rpk's short options, and Kafka's --topic: with it all arguments of produce are files."""
    assert heirlog("topics", "create", "words").code == 0
    assert heirlog("produce", "-t", "words", "-k", "key", "-z", "gzip", __file__).code == 0
    assert heirlog("produce", "words", "--topic", __file__, __file__).code == 1, "two names of topics"
    assert heirlog("produce").code == heirlog("produce", "--lines", "-t", "words").code == 2
    (line,) = lines(heirlog, "-t", "words", "-e", "-J")
    assert (json.loads(line)["key"], json.loads(line)["value"]) == ("key", Path(__file__).read_text())
    assert lines(heirlog, "--topic", "words", "-G", "both", "-e", "-f", r"%k\n") == ["key"]


def test_several_topics_and_patterns(heirlog: Heirlog, cluster: Cluster) -> None:
    for topic in ("in-1", "in-2", "not-in-3"):
        write(cluster, topic, topic)
    assert lines(heirlog, "in-1", "not-in-3", "-e") == ["in-1", "not-in-3"]
    assert lines(heirlog, "--include", "in-.*", "-e") == ["in-1", "in-2"]


def test_records_are_written_in_each_form(heirlog: Heirlog, five: str) -> None:
    assert lines(heirlog, five, "-e", "-p", "1", "-f", r"%t/%p/%o=%s\n") == ["five/1/0=x", "five/1/1=y"]
    assert heirlog("consume", five, "-e", "-p", "1", "-f", "%s").out == "xy", "raw"
    first, _ = (json.loads(line) for line in lines(heirlog, five, "-e", "-p", "1", "--json"))
    assert (first["topic"], first["partition"], first["offset"], first["value"]) == ("five", 1, 0, "x")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "name the topics, or give --include"),
        (["five", "--include", "f.*"], 2, "name the topics, or give --include"),
        (["--include", "["], 2, "is not a regular expression"),
        (["--include", "none-.*"], 1, "no topic matches"),
        (["five", "--json", "-f", "%s"], 2, "at most one of --json"),
        (["five", "-f", "%y"], 2, "%y is unknown"),
        (["five", "--last", "1", "--offset", "1"], 2, "at most one of --from-beginning, --offset"),
        (["five", "--offset", "soon"], 2, "is no offset"),
        (["five", "--timestamp", "soon"], 2, "is not of the form"),
        (["five", "-e", "--offset", "4"], 1, "five-1 has no offset 4: it begins at 0, and its next record gets 2"),
        (["five", "-p", "2"], 1, "five has partitions 0 to 1, not 2"),
        (["five", "-g", "g", "--last", "1"], 2, "--group goes with --from-beginning only"),
        (["five", "-g", "g", "-p", "1"], 2, "--group goes with --from-beginning only"),
    ],
)
def test_what_cannot_be_read_is_refused_with_one_sentence(
    heirlog: Heirlog, five: str, arguments: list[str], code: int, sentence: str
) -> None:
    outcome = heirlog("consume", *arguments)
    assert (outcome.code, outcome.err.count("\n"), outcome.out) == (code, 1, "")
    assert sentence in outcome.err


# groups


@contextmanager
def reading(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Killed after a minute, so that a line that does not come is an empty one."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        limit = threading.Timer(60, process.kill)
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


def test_what_is_waited_for_without_brokers_is_said_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("outage", 2)
    with Client(cluster.bootstrap_servers) as client:
        rounds = Reader(client, {("outage", 0): 0, ("outage", 1): 0}, topic_ids(client, [("outage", 0)])).rounds()
        assert next(rounds) == []
        stderr(capfd)
        cluster.kill(cluster.brokers[0])
        with monkeypatch.context() as patched:
            patched.setattr(record_reader, "ANSWER_S", 0.5)
            assert [next(rounds) for _ in range(2)] == [[], []]
        said = stderr(capfd)
        assert said.count("\n") == 1 and "outage-0 cannot be read now: " in said and "trying for 30 s" in said
        cluster.start(cluster.brokers[0])
        cluster.wait_until_ready()
        client.produce("outage", 1, encode_batch([(None, b"a", (), 0)]))
        found: list[bytes | None] = []
        while not found:
            found = [record.value for _, records in next(rounds) for record in records]
        assert found == [b"a"]


def test_a_group_s_wait_is_said(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 0.01)
    said: list[str] = []

    def heard() -> bool:
        said.append(stderr(capfd))
        return "".join(said).endswith("\n")

    with Saying(once(lambda: "waiting for it")):
        eventually(heard)
    assert "".join(said) + stderr(capfd) == "waiting for it\n"


def committed(heirlog: Heirlog, group: str) -> dict[int, int]:
    return {row["partition"]: row["offset"] for row in rows(heirlog, "groups", "describe", "--group", group)}


def test_a_group_goes_on_where_it_stopped(heirlog: Heirlog, cluster: Cluster) -> None:
    write(cluster, "orders", "1", "2", "3")
    assert lines(heirlog, "orders", "-g", "billing", "-e") == ["1", "2", "3"]
    assert lines(heirlog, "orders", "-g", "shipping", "-e", "--from-beginning", "-c", "2") == ["1", "2"]
    assert committed(heirlog, "shipping") == {0: 2}, "what was fetched and not written is not committed"
    write(cluster, "orders", "4")
    assert lines(heirlog, "orders", "-g", "shipping", "-e", "--from-beginning") == ["3", "4"]
    assert lines(heirlog, "orders", "-g", "billing", "-e") == ["4"]
    states = {row["group"]: row["state"] for row in rows(heirlog, "groups", "list")}
    assert (states["billing"], states["shipping"]) == ("Empty", "Empty"), "both members have left"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_commits_what_was_written_and_leaves(heirlog: Heirlog, cluster: Cluster, number: signal.Signals) -> None:
    group = f"stopped-{number}"
    write(cluster, group, "a", "b")
    command = [*CONSUME, group, "--group", group, "--from-beginning"]
    with reading(command) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"a\n", b"b\n"]
        process.send_signal(number)
        assert process.wait(60) == 130
    assert committed(heirlog, group) == {0: 2}
    states = {row["group"]: row["state"] for row in rows(heirlog, "groups", "list")}
    assert states[group] == "Empty", "its session does not have to end first"


def test_an_output_that_is_closed_ends_the_membership(heirlog: Heirlog, cluster: Cluster) -> None:
    write(cluster, "head", *map(str, range(20_000)))
    command = [*CONSUME, "head", "--group", "head", "--from-beginning"]
    with reading(command) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        process.wait(60)
        assert b"Traceback" not in process.stderr.read()
    states = {row["group"]: row["state"] for row in rows(heirlog, "groups", "list")}
    assert states.get("head", "Empty") == "Empty"


def test_it_shares_a_topic_with_a_member_of_librdkafka(heirlog: Heirlog, cluster: Cluster) -> None:
    write(cluster, "shared", "first", partitions=2)
    write(cluster, "shared", "second", partition=1)
    other = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "both",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "log_level": 0,
        }
    )
    command = [*CONSUME, "shared", "--group", "both", "--from-beginning", "--json"]

    def assigned(count: int) -> Any:
        other.poll(0.1)
        return len(other.assignment()) == count

    try:
        other.subscribe(["shared"])
        eventually(lambda: assigned(2), "both partitions")
        with reading(command) as process:
            try:
                eventually(lambda: assigned(1), "one partition for each")
                (its,) = other.assignment()
                write(cluster, "shared", "third", partition=1 - its.partition)
                assert process.stdout is not None
                while json.loads(process.stdout.readline())["value"] != "third":
                    pass
            finally:
                process.terminate()
                process.wait(60)
        eventually(lambda: assigned(2), "both partitions, after the other member has left")
    finally:
        other.close()


def test_a_group_whose_records_were_deleted_is_told_how_to_go_on(heirlog: Heirlog, cluster: Cluster) -> None:
    write(cluster, "short", "1", "2", "3")
    assert lines(heirlog, "short", "-g", "late", "-e", "--from-beginning", "-c", "1") == ["1"]
    delete_below(cluster, "short", 2)
    outcome = heirlog("consume", "short", "-g", "late", "-e")
    assert outcome.code == 1 and "heirlog groups reset-offsets --group late --topic short --to-earliest" in outcome.err


def delete_below(cluster: Cluster, topic: str, offset: int) -> None:
    nested = DeleteRecordsRequest
    partition = nested.DeleteRecordsPartition(partition_index=0, offset=offset)
    with Client(cluster.bootstrap_servers) as client:
        request = nested(topics=[nested.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=10_000)
        answer = client.send_to_leader(topic, 0, request)
        assert answer.topics[0].partitions[0].error_code == 0


# copying


def test_what_consume_prints_can_be_produced(heirlog: Heirlog, cluster: Cluster) -> None:
    for topic in ("source", "copy"):
        assert heirlog("topics", "create", topic).code == 0
    produce = [sys.executable, "-m", "heirlog", "produce"]
    tagged = [*produce, "source", "--key-separator", ":", "-H", "from=here", "-Z"]
    subprocess.run(tagged, input=b"a:1\nb:\n", capture_output=True, timeout=60, check=True)
    printed = heirlog("consume", "source", "-e", "--json").out
    bad = b'{"value": 1}\n'
    done = subprocess.run(
        [*produce, "copy", "--input-format", "json"], input=printed.encode() + bad, capture_output=True, timeout=60
    )
    assert done.returncode == 1 and b"not a JSON object" in done.stderr
    assert b"copy: 2 records acknowledged, 1 not acknowledged" in done.stderr, "what was before the bad line is sent"
    source, copy = (
        [json.loads(line) for line in lines(heirlog, topic, "-e", "--json")] for topic in ("source", "copy")
    )
    assert [{**record, "topic": "copy"} for record in source] == copy
    assert [(record["key"], record["value"], record["headers"]) for record in copy] == [
        ("a", "1", [["from", "here"]]),
        ("b", None, [["from", "here"]]),
    ]


def test_a_line_may_name_its_partition_and_is_refused_with_its_number_if_that_cannot_be(
    heirlog: Heirlog, cluster: Cluster
) -> None:
    assert heirlog("topics", "create", "placed", "--partitions", "3").code == 0
    produce = [sys.executable, "-m", "heirlog", "produce", "placed", "--input-format", "json"]
    good = b'{"value": "a", "partition": 2, "topic": "placed"}\n{"value": "b", "partition": 1}\n'
    for bad, why in (
        (b'{"value": "c", "partition": 3}\n', b"line 3: placed has partitions 0 to 2, not 3"),
        (b'{"value": "c", "topic": "other"}\n', b"line 3: the record is for topic other"),
        (b'{"val": "c"}\n', b"line 3: not a JSON object"),
    ):
        done = subprocess.run(produce, input=good + bad, capture_output=True, timeout=60)
        assert done.returncode == 1 and why in done.stderr
        assert b"placed: 2 records acknowledged, 1 not acknowledged" in done.stderr
    assert lines(heirlog, "placed", "-e", "-f", r"%p%s\n") == ["1b", "1b", "1b", "2a", "2a", "2a"]


def test_records_without_a_key_go_to_all_partitions_in_turn(heirlog: Heirlog, cluster: Cluster) -> None:
    assert heirlog("topics", "create", "spread", "--partitions", "3").code == 0
    produce = [sys.executable, "-m", "heirlog", "produce", "spread"]
    subprocess.run(produce, input=b"a\nb\nc\nd\n", capture_output=True, timeout=60, check=True)
    assert lines(heirlog, "spread", "-e", "-f", r"%p%s\n") == ["0a", "0d", "1b", "2c"]


def test_a_time_of_long_ago_is_more_likely_one_of_seconds(heirlog: Heirlog, five: str) -> None:
    outcome = heirlog("consume", five, "-e", "--timestamp", "1795753897")
    assert outcome.code == 0
    assert outcome.err == "--timestamp 1795753897 is in ms, so in the year 1970; 1795753897000 is that many seconds\n"
