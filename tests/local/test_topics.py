"""Topics of a cluster of processes: made, led and in sync when the call returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from heirlog.blocking import Client
from heirlog.local import topics
from heirlog.testing import Cluster
from heirlog.testing.cluster import ClusterError

SHORT_S = 0.2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, config={"broker.heartbeat.interval.ms": 500, "num.partitions": 3}) as running:
        yield running


def test_every_broker_knows_a_new_topic_and_its_leaders(cluster: Cluster) -> None:
    cluster.create_topic("orders", partitions=2, replication_factor=1, config={"min.insync.replicas": 1})
    cluster.create_topic("defaults")
    for address in cluster.bootstrap_servers.split(","):
        with Client(address) as client:
            found = {topic.name: topic.partitions for topic in client.metadata(["orders", "defaults"]).topics}
        assert [len(partition.replica_nodes) for partition in found["orders"]] == [1, 1]
        assert [len(partition.replica_nodes) for partition in found["defaults"]] == [2, 2, 2]
        assert all(partition.leader_id in cluster.brokers for partition in (*found["orders"], *found["defaults"]))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "no/name"}, "a topic cannot be created: .*letters, digits"),
        ({"name": "t", "replication_factor": 3}, "topic t cannot be created: .*replication factor"),
        ({"name": "t", "config": {"no.such": True}}, "topic t cannot be created: .*no.such"),
        ({"name": "t", "config": {"retention.m": 1}}, r"topic t cannot be created: .*did you mean retention\.ms\?"),
        ({"name": "twice"}, "a topic cannot be created: .*exists"),
    ],
)
def test_what_cannot_be_created_is_one_line(cluster: Cluster, arguments: dict[str, Any], sentence: str) -> None:
    if arguments["name"] == "twice":
        cluster.create_topic("twice")
    with pytest.raises(ClusterError, match=f"(?i)^{sentence}.*$") as raised:
        cluster.create_topic(**arguments)
    assert "\n" not in str(raised.value)
    assert len(arguments["name"]) == 1 or str(raised.value).count(arguments["name"]) == 1, "it is named once"


def test_a_topic_outlives_its_leader_and_is_in_sync_again(cluster: Cluster) -> None:
    cluster.create_topic("led", partitions=1, replication_factor=2)
    first = cluster.leader("led")
    cluster.kill(first)
    second = cluster.leader("led")
    assert {first, second} == {1, 2}
    with pytest.raises(ClusterError, match=r"^not within 0.2 s: all replicas in sync; out of sync: .*led-0"):
        cluster.wait_until_in_sync(timeout_s=SHORT_S)
    cluster.start(first)
    cluster.wait_until_in_sync()
    assert topics.out_of_sync(cluster.bootstrap_servers.split(",")[second - 1]) == []


def test_a_leader_that_is_not_there_is_waited_for_in_vain(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"brokers agree on a leader of nowhere-0; nowhere-0 does not exist$"):
        cluster.leader("nowhere", timeout_s=SHORT_S)
    with pytest.raises(ClusterError, match=r"^not within 0.2 s: .* of led-7; led-7 does not exist$"):
        cluster.leader("led", partition=7, timeout_s=SHORT_S)


def test_a_topic_of_which_no_broker_knows_is_not_waited_for_to_the_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heirlog.local.cluster.MISSING_S", SHORT_S)
    with pytest.raises(ClusterError, match=r"^no running broker knows of nowhere-0: it does not exist$"):
        cluster.leader("nowhere")


def test_without_a_running_broker_every_call_says_so() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.kill(1)
        for call in (lambda: cluster.create_topic("t"), lambda: cluster.leader("t"), cluster.wait_until_in_sync):
            with pytest.raises(ClusterError, match=r"^no broker is running$"):
                call()
