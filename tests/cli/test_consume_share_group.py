"""`heirlog consume --share-group`, and librdkafka's share consumer, as members of share groups."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from cli.conftest import Heirlog, stderr
from cli.test_consume import CONSUME, reading, write
from confluent_kafka import ShareConsumer
from patience import eventually

from heirlog.blocking import Acknowledge, Client
from heirlog.cli import waiting
from heirlog.cli.share_reader import ShareReader
from heirlog.protocol.batch import encode_batch
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, config={"share.coordinator.state.topic.num.partitions": 1}) as running:
        yield running


def share(heirlog: Heirlog, cluster: Cluster, topic: str, *values: str) -> None:
    """A topic, and a group of the same name that begins with its first record."""
    write(cluster, topic, *values)
    configured = ["configs", "alter", "group", topic, "--add-config", "share.auto.offset.reset=earliest"]
    assert heirlog(*configured).code == 0


def delivered(heirlog: Heirlog, topic: str, count: int) -> list[tuple[str, int]]:
    outcome = heirlog("consume", topic, "--share-group", topic, "--max", str(count), "--json")
    assert outcome.code == 0, outcome.err
    return [(line["value"], line["delivery_count"]) for line in map(json.loads, outcome.out.splitlines())]


def test_what_was_not_acknowledged_is_delivered_again_with_a_higher_count(heirlog: Heirlog, cluster: Cluster) -> None:
    share(heirlog, cluster, "again", "a", "b")
    with Client(cluster.bootstrap_servers) as client, client.share_consumer("again", ["again"]) as consumer:
        (first,) = eventually(consumer.poll)
        assert [record.value for record in first.records] == [b"a", b"b"]
        assert (first.delivery_count, consumer.topic_name(first.key)) == (1, "again")
        consumer.acknowledge(first, Acknowledge.RELEASE)
        (second,) = eventually(consumer.poll)
        assert second.delivery_count == 2
        consumer.acknowledge(first, Acknowledge.ACCEPT)
    assert delivered(heirlog, "again", 2) == [("a", 3), ("b", 3)], (
        "the first delivery is over, and the second had no end"
    )
    other = heirlog("consume", "again", "-e", "-g", "again")
    assert (other.code, "again is a share group: consume --share-group again" in other.err) == (1, True), other.err


def test_a_member_that_is_interrupted_gives_back_what_it_has_not_written(heirlog: Heirlog, cluster: Cluster) -> None:
    share(heirlog, cluster, "interrupted", "a")
    with reading([*CONSUME, "interrupted", "--share-group", "interrupted"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"a\n"
        write(cluster, "interrupted", "b")
        assert process.stdout.readline() == b"b\n"
        process.send_signal(2)
        process.wait(timeout=60)
    write(cluster, "interrupted", "c")
    assert delivered(heirlog, "interrupted", 1) == [("c", 1)]


def test_it_shares_a_topic_with_a_member_of_librdkafka(heirlog: Heirlog, cluster: Cluster) -> None:
    share(heirlog, cluster, "mixed", "a", "b", "c")
    assert delivered(heirlog, "mixed", 1) == [("a", 1)]
    other: Any = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "mixed", "log_level": 0})
    try:
        other.subscribe(["mixed"])
        found: list[bytes] = []

        def both() -> bool:
            found.extend(message.value() for message in other.poll(0.5) or () if message.error() is None)
            return len(found) == 2

        eventually(both)
        assert found == [b"b", b"c"]
        other.commit_sync()
    finally:
        other.close()
    write(cluster, "mixed", "d")
    assert delivered(heirlog, "mixed", 1) == [("d", 1)], "what librdkafka delivered it has accepted"


def test_an_outage_is_named_while_it_lasts(
    heirlog: Heirlog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    share(heirlog, cluster, "outage", "a")
    monkeypatch.setattr(waiting, "SAID_EVERY_S", 1.0)
    found: set[bytes | None] = set()
    said = ""

    def read(reader: ShareReader) -> None:
        with closing(reader.rounds()) as rounds:
            for parts in rounds:
                found.update(record.value for _, records in parts for record in records)
                reader.wrote()
                if b"b" in found:
                    return

    def is_said() -> bool:
        nonlocal said
        said += stderr(capfd)
        return said.endswith("\n")

    with Client(cluster.bootstrap_servers) as client:
        thread = threading.Thread(target=read, args=(ShareReader(client, "outage", ["outage"], None),))
        thread.start()
        eventually(lambda: b"a" in found)
        capfd.readouterr()
        cluster.kill(cluster.brokers[0])
        eventually(is_said)
        assert said == "waiting for the coordinator of share group outage, or for a leader of its partitions\n"
        cluster.start(cluster.brokers[0])
        write(cluster, "outage", "b")
        thread.join(60)
    assert found == {b"a", b"b"}


@pytest.mark.parametrize("option", [["--group", "g"], ["--until-end"], ["--partition", "0"], ["--from-beginning"]])
def test_what_the_group_decides_is_no_option(heirlog: Heirlog, cluster: Cluster, option: list[str]) -> None:
    outcome = heirlog("consume", "t", "--share-group", "s", *option)
    assert outcome.code == 2
    assert "--share-group goes with none of" in outcome.err


def test_leaders_take_turns(heirlog: Heirlog) -> None:
    """One that always has enough for a poll does not keep the others' records waiting."""
    with Cluster(nodes=2, config={"share.coordinator.state.topic.num.partitions": 1}) as cluster:
        cluster.create_topic("turns", partitions=2, replication_factor=1)
        assert cluster.leader("turns", 0) != cluster.leader("turns", 1)
        with Client(cluster.bootstrap_servers) as client:
            configured = ["configs", "alter", "group", "turns", "--add-config", "share.auto.offset.reset=earliest"]
            assert heirlog(*configured, "-b", cluster.bootstrap_servers).code == 0
            for partition in (0, 1):
                client.produce("turns", partition, encode_batch([(None, b"value", (), 0)] * 2_000))
            with client.share_consumer("turns", ["turns"]) as consumer:

                def counted(polls: int, records: int) -> Counter[int]:
                    found: Counter[int] = Counter()
                    for _ in range(polls):
                        for each in consumer.poll(records, is_exact=True):
                            found[each.key[1]] += each.last - each.first + 1
                            consumer.acknowledge(each, Acknowledge.ACCEPT)
                    return found

                begun: Counter[int] = Counter()

                def both_have_begun() -> bool:
                    begun.update(counted(1, 1))
                    return len(begun) == 2

                eventually(both_have_begun)
                assert counted(10, 20) == {0: 100, 1: 100}
