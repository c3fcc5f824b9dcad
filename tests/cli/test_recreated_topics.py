"""A topic that is deleted and created again while `heirlog consume` reads it: no record of the new one is skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from cli.conftest import Heirlog

from heirlog.blocking import Client
from heirlog.cli import record_reader
from heirlog.cli.group_options import GroupOptions
from heirlog.cli.group_reader import GroupReader
from heirlog.cli.group_topics import GroupTopics
from heirlog.cli.record_reader import Reader, Recreated, topic_ids
from heirlog.client.offsets import TopicPartition
from heirlog.protocol.batch import Record, encode_batch
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")

Rounds = Iterator[list[tuple[TopicPartition, list[Record]]]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(record_reader, "ANSWER_S", 0.5)
    with Client(cluster.bootstrap_servers) as connected:
        yield connected


def write(client: Client, topic: str, *values: str) -> None:
    with client.producer() as producer:
        for value in values:
            producer.send(topic, 0, encode_batch([(None, value.encode(), (), time.time_ns() // 1_000_000)]))


def read(rounds: Rounds, wanted: int, then: Callable[[], None] = lambda: None) -> list[bytes | None]:
    """then: after each round."""
    values: list[bytes | None] = []
    while len(values) < wanted:
        values += [record.value for _, records in next(rounds) for record in records]
        then()
    return values


def recreate(heirlog: Heirlog, topic: str) -> None:
    assert heirlog("topics", "delete", topic, "--yes").code == 0
    assert heirlog("topics", "create", topic).code == 0


def test_without_a_group_it_is_an_error(heirlog: Heirlog, cluster: Cluster, client: Client) -> None:
    cluster.create_topic("alone", partitions=1)
    write(client, "alone", "0", "1")
    ids = topic_ids(client, [("alone", 0)])
    rounds = Reader(client, {("alone", 0): 0}, ids).rounds()
    assert read(rounds, 2) == [b"0", b"1"]
    recreate(heirlog, "alone")
    write(client, "alone", "2", "3", "4")
    with pytest.raises(Recreated, match="topic alone was deleted and created again meanwhile: start again"):
        for _ in rounds:
            pass
    # created again after the ids were looked up, and before the first record was read
    with pytest.raises(Recreated):
        next(Reader(client, {("alone", 0): 1}, ids).rounds())


@pytest.mark.parametrize("heartbeat_ms", [1, 10_000], ids=["at each round", "later"])
def test_a_member_of_a_group_reads_the_new_topic_from_its_beginning(
    heirlog: Heirlog, cluster: Cluster, client: Client, heartbeat_ms: int
) -> None:
    """A heartbeat commits before it asks: an offset of the old topic becomes one of the group's in the new one."""
    name = f"grouped-{heartbeat_ms}"
    cluster.create_topic(name, partitions=1)
    write(client, name, "0", "1")
    member = GroupReader(
        client,
        name,
        GroupTopics(client, [name], None, 5_000),
        options=GroupOptions(heartbeat_interval_ms=heartbeat_ms),
        from_beginning=True,
        until_end=False,
        left=None,
        explain=lambda _: None,
    )
    with closing(member.rounds()) as rounds:
        assert read(rounds, 2, member.wrote) == [b"0", b"1"]
        recreate(heirlog, name)
        write(client, name, *map(str, range(2, 5)))
        assert read(rounds, 3, member.wrote) == [b"2", b"3", b"4"]
    assert client.committed(name, [(name, 0)])[name, 0].offset == 3
