"""Replication on real processes: what is promised while leaders die, the ISR is too small, or brokers are fenced."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from patience import eventually
from processes.observing import (
    NO_LEADER,
    address_of,
    client_of,
    create,
    latest,
    metadata_records,
    read,
    topics,
    wait_for,
    write,
    write_once,
)

from heirlog.blocking.connection import Connection
from heirlog.drill.servers import Servers
from heirlog.drill.workload import EndOffsetWatch, Writer, read_all
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionRequest, FetchRequest, MetadataRequest
from heirlog.protocol.records import PartitionChangeRecord, PartitionRecord, RegisterBrokerRecord
from heirlog.testing.cluster import Cluster

pytestmark = pytest.mark.usefixtures("everybody_runs_again")

SESSION_S = 120
"""Whoever waited for the end of one would be noticed, also on a busy machine."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        # a clean stop waits until the others' heartbeats say that they know
        "broker.heartbeat.interval.ms": 500,
        "broker.session.timeout.ms": SESSION_S * 1000,
        "heirlog.broker.disconnect.grace.ms": 200,
        "auto.leader.rebalance.enable": False,
    }
    with Cluster(nodes=3, config=config) as running:
        yield running


@pytest.mark.parametrize("seed", [None, 11], ids=["everything-unflushed-lost", "a-batch-torn"])
def test_leaders_killed_and_cut_off_from_power_mid_produce_lose_nothing_acknowledged(
    cluster: Cluster, seed: int | None
) -> None:
    topic = f"power-{seed}"
    create(cluster, topic, [1, 2, 3])
    with (
        EndOffsetWatch(Servers.of(cluster), topic) as watch,
        Writer(Servers.of(cluster), topic, acks="all") as writer,
    ):
        for _ in range(2):
            goal = len(writer.acknowledged) + 1_500
            eventually(lambda goal=goal: len(writer.acknowledged) >= goal, "records to be acknowledged")
            leader = wait_for(cluster, topic, lambda view: view.leader != NO_LEADER).leader
            cluster.kill(leader)
            assert cluster.lose_unflushed(leader, seed).cuts
            wait_for(cluster, topic, lambda view, old=leader: view.leader not in (NO_LEADER, old))
            cluster.start(leader)
            wait_for(cluster, topic, lambda view: len(view.isr) == 3)
        eventually(lambda: watch.answers > 10, "the end offset to be asked for often enough")
    found = read_all(Servers.of(cluster), topic).crc_by_offset
    assert writer.refused == 0
    assert [record for record in writer.acknowledged if found.get(record.offset) != record.crc] == []
    assert watch.went_back == []


def test_a_dead_broker_is_fenced_soon_because_its_connection_closed(cluster: Cluster) -> None:
    create(cluster, "fenced", [2, 1, 3])
    cluster.kill(2)
    started = time.monotonic()
    wait_for(cluster, "fenced", lambda view: view.leader == 1 and 2 not in view.isr)
    assert time.monotonic() - started < SESSION_S / 2, "that took as long as a session"
    assert '"reason": "its connection closed, and nothing listens at ' in cluster.output(100)


def test_under_min_isr_acks_all_is_refused_and_acks_1_is_taken_but_not_shown(cluster: Cluster) -> None:
    create(cluster, "min-isr", [1, 2, 3])
    assert write(cluster, "min-isr", b"a").error_code == 0
    cluster.stop(2)
    cluster.stop(3)
    wait_for(cluster, "min-isr", lambda view: view.isr == (1,))

    refused = write_once(cluster, 1, "min-isr", b"b", acks=-1)
    assert refused is not None and refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    taken = write_once(cluster, 1, "min-isr", b"c", acks=1)
    assert taken is not None and (taken.error_code, taken.base_offset) == (0, 1)
    assert write_once(cluster, 1, "min-isr", b"d", acks=0) is None
    following = write_once(cluster, 1, "min-isr", b"e", acks=1)
    assert following is not None and following.base_offset == 3, "acks=0 was written too"
    assert latest(cluster, "min-isr") == 1
    assert read(cluster, "min-isr") == [b"a"]

    cluster.start(2)
    wait_for(cluster, "min-isr", lambda view: set(view.isr) == {1, 2})
    eventually(lambda: latest(cluster, "min-isr") == 4, "the watermark to pass what min ISR now protects")
    assert read(cluster, "min-isr") == [b"a", b"c", b"d", b"e"]


def test_the_preferred_leader_is_elected_when_the_operator_asks(cluster: Cluster) -> None:
    create(cluster, "preferred", [3, 1, 2])
    cluster.stop(3)
    wait_for(cluster, "preferred", lambda view: view.leader == 1)
    cluster.start(3)
    wait_for(cluster, "preferred", lambda view: len(view.isr) == 3)
    before = wait_for(cluster, "preferred", lambda view: True)
    assert before.leader == 1
    done = heirlog(cluster, "elect", "--election-type", "preferred", "--topic", "preferred", "--partition", "0")
    assert done.returncode == 0, done.stderr
    after = wait_for(cluster, "preferred", lambda view: view.leader == 3)
    assert after.leader_epoch > before.leader_epoch
    again = heirlog(cluster, "elect", "--election-type", "preferred", "--topic", "preferred", "--partition", "0")
    assert again.returncode == 0 and "ELECTION_NOT_NEEDED" in again.stdout


def test_an_unclean_election_brings_back_a_partition_that_nobody_may_lead(cluster: Cluster) -> None:
    create(cluster, "unclean", [1, 2], config={"min.insync.replicas": "1"})
    assert write(cluster, "unclean", b"everywhere").error_code == 0
    cluster.stop(2)
    wait_for(cluster, "unclean", lambda view: view.isr == (1,) and view.elr == ())
    assert write(cluster, "unclean", b"on 1 only").error_code == 0
    cluster.kill(1)
    cluster.start(2)
    stuck = wait_for(cluster, "unclean", lambda view: view.leader == NO_LEADER)
    assert stuck.isr in ((), (1,))
    clean = heirlog(cluster, "elect", "--election-type", "preferred", "--topic", "unclean", "--partition", "0")
    assert clean.returncode == 1 and "PREFERRED_LEADER_NOT_AVAILABLE" in clean.stderr
    eventually(
        lambda: (
            heirlog(cluster, "elect", "--election-type", "unclean", "--topic", "unclean", "--partition", "0").returncode
            == 0
        ),
        "broker 2 to be unfenced and elected",
    )
    elected = wait_for(cluster, "unclean", lambda view: view.leader == 2)
    assert elected.isr == (2,)
    assert read(cluster, "unclean") == [b"everywhere"]
    cluster.start(1)
    wait_for(cluster, "unclean", lambda view: set(view.isr) == {1, 2})
    assert write(cluster, "unclean", b"after").base_offset == 1
    assert read(cluster, "unclean") == [b"everywhere", b"after"]


def heirlog(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heirlog", *arguments, "--bootstrap-server", cluster.bootstrap_servers]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def reborn(cluster: Cluster, broker: int, topic: str) -> tuple[int, int]:
    """Kill it, cut its power, start it again: its broker epochs before and after."""
    earlier = broker_epoch(cluster, broker)
    cluster.kill(broker)
    cluster.lose_unflushed(broker)
    # or the ISR of before would be taken for the one that it comes back to
    wait_for(cluster, topic, lambda view: broker not in view.isr)
    cluster.start(broker)
    eventually(lambda: broker_epoch(cluster, broker) > earlier, "the registration of its next life")
    wait_for(cluster, topic, lambda view: len(view.isr) == 3)
    return earlier, broker_epoch(cluster, broker)


def broker_epoch(cluster: Cluster, broker: int) -> int:
    """Of its newest registration."""
    return max(
        record.broker_epoch
        for _, record in metadata_records(cluster, 100)
        if isinstance(record, RegisterBrokerRecord) and record.broker_id == broker
    )


def partition_epoch(cluster: Cluster, topic: str) -> int:
    """Each change counts it up."""
    topic_id = topics(cluster)[topic]
    changed = [
        record
        for _, record in metadata_records(cluster, 100)
        if isinstance(record, PartitionRecord | PartitionChangeRecord) and record.topic_id == topic_id
    ]
    return len(changed) - 1


def test_a_follower_s_earlier_life_cannot_bring_it_into_the_isr(cluster: Cluster) -> None:
    """KIP-903: the leader names the broker epoch that it saw fetching, and only the current one is accepted."""
    create(cluster, "reborn", [1, 2, 3])
    earlier, current = reborn(cluster, 3, "reborn")
    cluster.stop(2)
    view = wait_for(cluster, "reborn", lambda view: set(view.isr) == {1, 3})
    leader_s_epoch = broker_epoch(cluster, 1)

    def alter(epoch_of_3: int) -> int:
        state = AlterPartitionRequest.BrokerState
        partition = AlterPartitionRequest.PartitionData(
            partition_index=0,
            leader_epoch=view.leader_epoch,
            new_isr_with_epochs=[
                state(broker_id=1, broker_epoch=leader_s_epoch),
                state(broker_id=3, broker_epoch=epoch_of_3),
            ],
            partition_epoch=partition_epoch(cluster, "reborn"),
        )
        request = AlterPartitionRequest(
            broker_id=1,
            broker_epoch=leader_s_epoch,
            topics=[AlterPartitionRequest.TopicData(topic_id=topics(cluster)["reborn"], partitions=[partition])],
        )
        with Connection(*controller_address(cluster)) as connection:
            response = connection.request(request, version=3)
        assert response.error_code == 0
        return int(response.topics[0].partitions[0].error_code)

    assert alter(earlier) == ErrorCode.INELIGIBLE_REPLICA
    assert alter(current) == ErrorCode.NONE


def controller_address(cluster: Cluster) -> tuple[str, int]:
    for line in (cluster.data / "controller-100" / "server.properties").read_text().splitlines():
        if line.startswith("listeners="):
            host, _, port = line.partition("://")[2].rpartition(":")
            return host, int(port)
    raise AssertionError("the controller has no listener")


def test_a_fetch_of_a_follower_s_earlier_life_is_refused_by_the_leader(cluster: Cluster) -> None:
    create(cluster, "stale", [1, 2, 3])
    earlier, current = reborn(cluster, 3, "stale")

    def fetch(epoch: int) -> int:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=3, replica_epoch=epoch),
            max_wait_ms=0,
            topics=[FetchRequest.FetchTopic(topic_id=topics(cluster)["stale"], partitions=[partition])],
        )
        with Connection(*address_of(cluster, 1)) as connection:
            response = connection.request(request)
        return int(response.error_code or response.responses[0].partitions[0].error_code)

    assert fetch(current) == ErrorCode.NONE
    assert fetch(earlier) != ErrorCode.NONE
    with client_of(cluster) as client:
        assert client.metadata(["stale"]).topics[0].error_code == 0


@pytest.fixture(scope="module")
def patient() -> Iterator[Cluster]:
    """Kafka's rule: silence alone fences."""
    config = {
        "heirlog.broker.disconnect.grace.ms": -1,
        "broker.session.timeout.ms": 4_000,
        "broker.heartbeat.interval.ms": 500,
        "min.insync.replicas": 1,
    }
    with Cluster(nodes=2, config=config) as cluster:
        yield cluster


def test_a_leader_that_stands_still_for_a_session_is_replaced_and_follows_when_it_wakes(patient: Cluster) -> None:
    create(patient, "asleep", [2, 1])
    assert write(patient, "asleep", b"a").error_code == 0
    patient.pause(2)
    try:
        with Connection(*address_of(patient, 1), timeout_s=60.0) as awake:
            eventually(lambda: leader_known_to(awake, "asleep") == 1, "broker 1 to lead")
            assert write_once(patient, 1, "asleep", b"b", acks=-1).error_code == 0  # type: ignore[union-attr]
    finally:
        patient.resume(2)
    # broker 2 answers from what it knew before its pause until it has read the metadata log
    wait_for(patient, "asleep", lambda view: view.leader == 1 and set(view.isr) == {1, 2})
    assert read(patient, "asleep") == [b"a", b"b"]


def leader_known_to(connection: Connection, topic: str) -> int:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    response = connection.request(request)
    return int(response.topics[0].partitions[0].leader_id)


def test_without_a_grace_only_silence_for_a_whole_session_fences(patient: Cluster) -> None:
    create(patient, "silent", [2, 1])
    seen = len(patient.output(100))
    patient.kill(2)
    wait_for(patient, "silent", lambda view: view.leader == 1)
    fenced = [line for line in patient.output(100)[seen:].splitlines() if "broker-fenced" in line]
    assert [json.loads(line)["reason"] for line in fenced] == ["no heartbeat for broker.session.timeout.ms"]
