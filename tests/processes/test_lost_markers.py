"""An election gives up the marker of one transaction and all records of another (U12), and the operator sees both.

Broker 2 misses the end of the partition: the marker of "half", which began while 2 was in sync, and all of "whole". An
operator names 2 as the leader. "half" hangs there, although its coordinator has committed it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Heirlog, heirlog, rows  # noqa: F401  # the fixture
from patience import eventually
from processes.observing import client_of
from processes.transacting import committed_values, transactional

from heirlog.client.admin import describe_topic_partitions
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing.cluster import Cluster

TOPIC = "orders"
HOLDER, WITHOUT = 1, 2
LIMIT_S = 30
SEARCH = ("transactions", "find-hanging", "--topic", TOPIC, "--max-transaction-timeout", "0")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "unclean.recovery.manager.enabled": True,
        "broker.heartbeat.interval.ms": 500,
        "heirlog.broker.disconnect.grace.ms": 300,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "heirlog.discarded.min.free.bytes": 0,
    }
    with Cluster(nodes=3, config=config) as running:
        yield running


@pytest.fixture(autouse=True)
def default_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)


def view(cluster: Cluster, topic: str) -> tuple[int, set[int]]:
    """Leader and ISR of partition 0."""
    with client_of(cluster) as client:
        (found,) = client.run(describe_topic_partitions([topic]))
    (partition,) = found.partitions
    return partition.leader_id, set(partition.isr_nodes)


def create(cluster: Cluster) -> None:
    replicas = CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[HOLDER, WITHOUT])
    config = CreateTopicsRequest.CreatableTopicConfig(name="min.insync.replicas", value="1")
    topic = CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[replicas], configs=[config]
    )
    with client_of(cluster) as client:
        (answer,) = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
    assert not answer.error_code, answer.error_message


def stopped_and_examined(cluster: Cluster, heirlog: Heirlog, copy: Path) -> list[tuple[str, int]]:  # noqa: F811
    """What `heirlog doctor` says of a copy of all folders: transactional id and start of what hangs in the topic."""
    shutil.copytree(cluster.data, copy / "data")
    found = json.loads(heirlog("doctor", str(copy / "data"), "--json").out)
    return sorted(
        {
            (*finding["transactional_ids"], finding["start_offset"])
            for directory in found["directories"]
            for finding in directory["findings"]
            if finding["kind"] == "hanging-transaction" and finding["topic"] == TOPIC
        }
    )


def test_lost_markers_are_found_named_and_aborted(
    cluster: Cluster,
    heirlog: Heirlog,  # noqa: F811
    tmp_path: Path,
) -> None:
    create(cluster)
    half, whole = transactional(cluster, "half"), transactional(cluster, "whole")
    half.begin_transaction()
    half.produce(TOPIC, b"half", partition=0)
    assert half.flush(LIMIT_S) == 0
    cluster.kill(WITHOUT)
    eventually(lambda: view(cluster, TOPIC)[1] == {HOLDER}, "the ISR without the broker that misses the end")
    half.commit_transaction(LIMIT_S)
    whole.begin_transaction()
    whole.produce(TOPIC, b"whole", partition=0)
    whole.commit_transaction(LIMIT_S)
    # also the last marker is committed
    eventually(
        lambda: {row["state"] for row in rows(heirlog, "transactions", "list")} == {"CompleteCommit"}, "the markers"
    )

    cluster.kill(HOLDER)
    cluster.start(WITHOUT)
    eventually(lambda: view(cluster, TOPIC)[0] == -1, "a partition without a leader")
    # a fenced broker may not lead
    cluster.wait_until_ready()
    elected = heirlog(
        "recover", "run", TOPIC, "--strategy", "designation", "--leader", str(WITHOUT), "--yes", "--wait", str(LIMIT_S)
    )
    assert elected.code == 0, elected.err
    eventually(lambda: view(cluster, TOPIC)[0] == WITHOUT, "the leader that the operator named")

    (hanging,) = eventually(lambda: rows(heirlog, *SEARCH), "the transaction without its marker")
    assert (hanging["transactional_id"], hanging["state"], hanging["start_offset"]) == ("half", "CompleteCommit", 0)
    (report,) = eventually(lambda: rows(heirlog, "recover", "report", TOPIC), "the report of the election")
    assert [each["transactional_id"] for each in report["hanging_transactions"]] == ["half"]
    said = heirlog("recover", "report", TOPIC).out
    assert "last transaction of half is CompleteCommit" in said and "--start-offset 0" in said, said
    assert "log-shorter-than-flushed" in said, "what the report cannot count"
    assert not committed_values(cluster, TOPIC)

    cluster.start(HOLDER)
    eventually(lambda: view(cluster, TOPIC)[1] == {HOLDER, WITHOUT}, "both replicas")
    producer_ids = {row["transactional_id"]: row["producer_id"] for row in rows(heirlog, "transactions", "list")}
    lines = [line for line in cluster.output(HOLDER).splitlines() if "transaction-lost-a-part" in line]
    told = {(event["producer_id"], event["lost"]) for event in map(json.loads, lines) if event["topic"] == TOPIC}
    assert told == {(producer_ids["half"], "marker"), (producer_ids["whole"], "transaction")}
    salvage = heirlog("recover", "salvage", "list", str(cluster.data), "--json")
    kept = next(each for each in json.loads(salvage.out) if each["topic"] == TOPIC)
    assert [(each["producer_id"], each["markers"]) for each in kept["transactions"]] == [
        (producer_ids["half"], ["commit"]),
        (producer_ids["whole"], ["commit"]),
    ]

    assert stopped_and_examined(cluster, heirlog, tmp_path) == [("half", 0)]
    aborted = heirlog("transactions", "abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "0")
    assert aborted.code == 0, aborted.err
    assert rows(heirlog, *SEARCH) == []
    whole.begin_transaction()
    whole.produce(TOPIC, b"later", partition=0)
    whole.commit_transaction(LIMIT_S)
    eventually(lambda: committed_values(cluster, TOPIC) == {b"later": 1}, "the next transaction")
