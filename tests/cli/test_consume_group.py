"""`heirlog consume --group` with each strategy, next to members of other clients, and topics that come and go."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cli.conftest import Heirlog, rows
from confluent_kafka import Consumer
from kafka import KafkaConsumer
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from patience import eventually

from heirlog.blocking import Client
from heirlog.cli.listed_groups import listed_groups
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import OffsetCommitRequest
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")

CONSUME = [sys.executable, "-m", "heirlog", "consume"]
AT_ONCE = ["-X", "metadata.max.age.ms=200", "-X", "heartbeat.interval.ms=200"]
WAIT_S = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.bootstrap_servers) as connected:
        yield connected


def write(client: Client, topic: str, partition: int, value: str) -> None:
    with client.producer() as producer:
        producer.send(topic, partition, encode_batch([(None, value.encode(), (), time.time_ns() // 1_000_000)]))


class Reading:
    """A running `heirlog consume`."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen([*CONSUME, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def next(self) -> str:
        return self._lines.get(timeout=WAIT_S).decode().rstrip("\n")

    def stop(self) -> str:
        """What it wrote to stderr."""
        self.process.terminate()
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        self.process.wait(WAIT_S)
        return said


@contextmanager
def reading(*arguments: str) -> Iterator[Reading]:
    found = Reading(*arguments)
    try:
        yield found
    finally:
        found.stop()
        assert found.process.stdout is not None and found.process.stderr is not None
        found.process.stdout.close()
        found.process.stderr.close()


def librdkafka(cluster: Cluster, group: str, strategy: str) -> tuple[Callable[[], int], Callable[[], None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 200,
            "log_level": 0,
        }
    )
    consumer.subscribe([group])

    def assigned() -> int:
        consumer.poll(0.05)
        return len(consumer.assignment())

    return assigned, consumer.close


def kafka_python(cluster: Cluster, group: str, strategy: str) -> tuple[Callable[[], int], Callable[[], None]]:
    assert strategy == "sticky"
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        partition_assignment_strategy=[StickyPartitionAssignor],
        heartbeat_interval_ms=200,
    )
    # it assigns nothing of a topic that its metadata do not have yet, and does not look again
    assert consumer.partitions_for_topic(group) == {0, 1, 2, 3}
    consumer.subscribe([group])
    # its poll discards a join that ended after the one before had timed out, and begins another: with polls that are
    # shorter than a join takes on this machine it never gets an assignment
    patience_ms = itertools.chain((50, 100, 200, 400, 800), itertools.repeat(2_000))

    def assigned() -> int:
        consumer.poll(next(patience_ms))
        return len(consumer.assignment())

    return assigned, consumer.close


@pytest.mark.parametrize("first", ["other", "heirlog"])
@pytest.mark.parametrize(
    ("other", "strategy"),
    [(librdkafka, "roundrobin"), (librdkafka, "cooperative-sticky"), (kafka_python, "sticky")],
)
def test_it_shares_a_topic_with_members_of_other_clients(
    cluster: Cluster, client: Client, other: Any, strategy: str, first: str
) -> None:
    """The first member leads the group and assigns, so each format is written by one side and read by the other."""
    group = f"shared-{strategy}-{first}"
    cluster.create_topic(group, partitions=4)
    arguments = [group, "-g", group, "--from-beginning", "--json", *AT_ONCE]
    arguments += ["-X", f"partition.assignment.strategy={strategy}"]
    ours: Reading | None = None
    try:
        if first == "heirlog":
            ours = Reading(*arguments)
            for partition in range(4):
                write(client, group, partition, "alone")
            assert {json.loads(ours.next())["partition"] for _ in range(4)} == {0, 1, 2, 3}
        assigned, close = other(cluster, group, strategy)
        try:
            if ours is None:
                eventually(lambda: assigned() == 4, "all partitions", WAIT_S)
                ours = Reading(*arguments)
            eventually(lambda: assigned() == 2, "two partitions for each", WAIT_S)
        finally:
            closing = threading.Thread(target=close)
            closing.start()
        closing.join()
        # the other one may have read some without a commit; what comes now is for the member that is left
        seen = set()
        while len(seen) < 4:
            for partition in range(4):
                write(client, group, partition, "left")
            record = json.loads(ours.next())
            if record["value"] == "left":
                seen.add(record["partition"])
    finally:
        if ours is not None:
            ours.stop()


def test_a_second_member_takes_half_of_the_partitions_and_gives_them_back(
    heirlog: Heirlog, cluster: Cluster, client: Client
) -> None:
    group = "two"
    cluster.create_topic(group, partitions=4)
    arguments = [group, "-g", group, "--from-beginning", "-f", r"%p\n", *AT_ONCE]
    arguments += ["-X", "partition.assignment.strategy=cooperative-sticky"]

    def shares() -> list[int]:
        if group not in group_states(client):
            return []
        members = rows(heirlog, "groups", "describe", group, "--members")
        return sorted(len(member["assignment"]) for member in members)

    with reading(*arguments) as one:
        eventually(lambda: shares() == [4], "all partitions", WAIT_S)
        with reading(*arguments) as two:
            eventually(lambda: shares() == [2, 2], "two partitions for each", WAIT_S)
            for partition in range(4):
                write(client, group, partition, "")
            assert {one.next(), one.next(), two.next(), two.next()} == {"0", "1", "2", "3"}, "each record once"
        eventually(lambda: shares() == [4], "all partitions, after the other has left", WAIT_S)
        for partition in range(4):
            write(client, group, partition, "")
        assert {one.next() for _ in range(4)} == {"0", "1", "2", "3"}, "each record once: nothing is read again"


@pytest.mark.parametrize("topics", [["later"], ["--include", "later.*"]])
def test_topics_that_are_created_later_are_read(
    heirlog: Heirlog, cluster: Cluster, client: Client, topics: list[str]
) -> None:
    group = f"waiting-{len(topics)}"
    with reading(*topics, "-g", group, "--from-beginning", "-f", r"%s\n", *AT_ONCE) as one:
        if len(topics) == 1:
            eventually(lambda: group in group_states(client), "a member", WAIT_S)
            cluster.create_topic("later", partitions=1)
            write(client, "later", 0, "first")
        assert one.next() == "first"
        if len(topics) == 2:
            cluster.create_topic("later-2", partitions=1)
            write(client, "later-2", 0, "second")
            assert one.next() == "second"
            # a topic that is deleted does not end the others
            assert heirlog("topics", "delete", "later-2").code == 0
            write(client, "later", 0, "third")
            assert one.next() == "third"
        said = one.stop()
    assert said.startswith("topic later does not exist yet: waiting for it\n") == (len(topics) == 1), said


def test_partitions_that_are_added_are_read(heirlog: Heirlog, cluster: Cluster, client: Client) -> None:
    cluster.create_topic("growing", partitions=1)
    write(client, "growing", 0, "0")
    with reading("growing", "-g", "growing", "--from-beginning", "-f", r"%s\n", *AT_ONCE) as one:
        assert one.next() == "0"
        assert heirlog("topics", "alter", "growing", "--partitions", "2").code == 0
        write(client, "growing", 1, "1")
        assert one.next() == "1"


def test_records_that_arrive_between_two_runs_are_read_even_if_the_first_run_read_none(
    heirlog: Heirlog, cluster: Cluster, client: Client
) -> None:
    cluster.create_topic("quiet", partitions=1)
    outcome = heirlog("consume", "quiet", "-g", "quiet", "-e")
    assert (outcome.code, outcome.out) == (0, "")
    write(client, "quiet", 0, "0")
    # without a committed offset it would begin at the end, behind the record
    with reading("quiet", "-g", "quiet", "-f", r"%s\n", *AT_ONCE) as one:
        assert one.next() == "0"


def test_a_static_member_keeps_its_place_when_it_stops(heirlog: Heirlog, cluster: Cluster, client: Client) -> None:
    cluster.create_topic("static", partitions=1)
    write(client, "static", 0, "0")
    more = ("-X", "group.instance.id=till-1", "-X", "group.protocol=classic", "-o", "stored")
    outcome = heirlog("consume", "static", "-g", "static", "-e", *more)
    assert (outcome.code, outcome.out) == (0, "0\n")
    assert group_states(client)["static"] == "Stable"


def test_an_instance_that_another_consumer_takes_over_ends_with_what_to_do(
    heirlog: Heirlog, cluster: Cluster, client: Client
) -> None:
    cluster.create_topic("twice", partitions=1)
    write(client, "twice", 0, "0")
    which = ("twice", "-g", "twice", "--from-beginning", "-X", "group.instance.id=both")
    with reading(*which, *AT_ONCE) as first:
        assert first.next() == "0"
        assert heirlog("consume", *which, "-e").code == 0
        first.process.wait(WAIT_S)
        said = first.stop()
    assert "FENCED_INSTANCE_ID" in said and "give each its own group.instance.id" in said


def test_an_offset_behind_the_end_is_answered_with_how_the_group_reads_on(
    heirlog: Heirlog, cluster: Cluster, client: Client
) -> None:
    cluster.create_topic("behind", partitions=1)
    write(client, "behind", 0, "0")
    request = OffsetCommitRequest(
        group_id="behind",
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name="behind",
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=7, committed_metadata=""
                    )
                ],
            )
        ],
    )
    client.send_to_coordinator(
        "behind", request, error_code=lambda got: int(got.topics[0].partitions[0].error_code), newest=9
    )
    outcome = heirlog("consume", "behind", "-g", "behind", "-n", "1")
    assert outcome.code == 1
    assert outcome.err == (
        "heirlog: behind-0 cannot be read at offset 7: OFFSET_OUT_OF_RANGE; its records were deleted meanwhile, an "
        "election gave them up, or the offset is one of an earlier topic with this name: heirlog groups reset-offsets "
        "--group behind --topic behind --to-earliest --execute\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["x", "-X", "session.timeout.ms=9"], 2, "give --group as well"),
        (["x", "-g", "g", "-X", "session.timeout.ms"], 2, "not of the form NAME=VALUE"),
        (["x", "-g", "g", "-X", "session.timeout.ms=soon"], 2, "is not a number of milliseconds"),
        (["x", "-g", "g", "-X", "session.timeout.ms=3000"], 2, "must be lower than session.timeout.ms"),
        (["x", "-g", "g", "-X", "auto.offset.reset=earliest"], 2, "use --from-beginning"),
        (["x", "-g", "g", "-X", "fetch.min.bytes=1"], 2, "has no effect here"),
        (["x", "-g", "g", "-X", "group.protocol=consumer"], 2, "is a member by the classic protocol only"),
        (["x", "-o", "stored"], 2, "give --group as well"),
        (["x", "-g", "g", "-X", "partition.assignment.strategy=uniform"], 2, "there are range, roundrobin, sticky"),
        (["x", "-g", "g", "-e"], 1, "topic x cannot be used"),
        (["--include", "x", "-g", "g", "-e"], 1, "no topic matches"),
        (["--include", "[", "-g", "g"], 2, "is not a regular expression"),
    ],
)
def test_what_cannot_be_a_member_is_refused_with_one_sentence(
    heirlog: Heirlog, arguments: list[str], code: int, sentence: str
) -> None:
    outcome = heirlog("consume", *arguments)
    assert (outcome.code, outcome.err.count("\n"), outcome.out) == (code, 1, "")
    assert sentence in outcome.err


def test_strategies_may_have_the_names_of_java_classes(heirlog: Heirlog, cluster: Cluster, client: Client) -> None:
    cluster.create_topic("java", partitions=1)
    write(client, "java", 0, "0")
    name = "partition.assignment.strategy=org.apache.kafka.clients.consumer.RoundRobinAssignor,range"
    outcome = heirlog("consume", "java", "-g", "java", "-e", "--consumer-property", name)
    assert (outcome.code, outcome.out) == (0, "0\n"), outcome.err


def group_states(client: Client) -> dict[str, str]:
    return {row["group"]: row["state"] for row in listed_groups(client)}
