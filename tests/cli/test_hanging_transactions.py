"""`heirlog transactions describe-producers|find-hanging|abort` against a real cluster."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Heirlog, rows
from confluent_kafka import KafkaException
from patience import eventually
from processes.transacting import committed_values, transactional

from heirlog.blocking import LATEST, READ_COMMITTED, Client
from heirlog.client.call import Send
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import (
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from heirlog.testing import Cluster

pytestmark = pytest.mark.usefixtures("default_cluster")
LIMIT_S = 30
TRANSACTION = 1
"""Key type of FindCoordinator."""
UNKNOWN_PRODUCER = 987_654_321
NOT_BY_PRODUCE = 11
"""The newest version of Produce that does not add its partition to the transaction."""
NOW = "--max-transaction-timeout=0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        # so that a batch without a transaction is accepted, as after the loss of a marker
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.replication.factor": "1",
        "transaction.two.phase.commit.enable": "true",
        "unstable.api.versions.enable": "true",
    }
    with Cluster(nodes=2, config={**config, "transaction.state.log.min.isr": "1"}) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.bootstrap_servers) as opened:
        yield opened


def create(client: Client, name: str) -> str:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=2)
    (answer,) = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
    assert not answer.error_code, answer.error_message
    return name


def write_hanging(client: Client, topic: str, partition: int, producer_id: int, epoch: int = 0) -> None:
    """A batch that opens a transaction without a coordinator."""
    now_ms = int(time.time() * 1000) - 1
    batch = encode_batch(
        [(None, b"hanging", (), now_ms)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )

    data = ProduceRequest.PartitionProduceData(index=partition, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    message = ProduceRequest(transactional_id="hanging", acks=-1, timeout_ms=10_000, topic_data=topics)
    leader = client.metadata([topic]).topics[0].partitions[partition].leader_id
    endpoint = client.brokers()[leader]
    send = Send(endpoint, message, 10.0, NOT_BY_PRODUCE)

    def call() -> Generator[Send, Any, Any]:
        return (yield send)

    answer = client._run(call())
    assert answer.responses[0].partition_responses[0].error_code == 0


def last_stable_offset(client: Client, topic: str, partition: int) -> int:
    return client.list_offsets({(topic, partition): LATEST}, isolation=READ_COMMITTED)[topic, partition].offset


def test_a_hanging_transaction_is_found_and_aborted_by_its_offset(heirlog: Heirlog, client: Client) -> None:
    topic = create(client, "by-offset")
    write_hanging(client, topic, 1, UNKNOWN_PRODUCER)
    assert rows(heirlog, "transactions", "find-hanging", "--topic", topic) == []  # younger than 15 minutes
    (found,) = rows(heirlog, "transactions", "find-hanging", "--topic", topic, NOW)
    assert (found["partition"], found["producer_id"], found["start_offset"]) == (1, UNKNOWN_PRODUCER, 0)
    assert (found["transactional_id"], found["coordinator_epoch"]) == (None, None)
    assert last_stable_offset(client, topic, 1) == 0

    wrong = heirlog("transactions", "abort", f"{topic}:1", "--start-offset", "7")
    assert wrong.code == 1 and f"describe-producers {topic}:1 " in wrong.err
    aborted = heirlog("transactions", "abort", f"{topic}:1", "--start-offset", "0")
    assert (aborted.code, aborted.out, aborted.err) == (0, "", "")
    assert last_stable_offset(client, topic, 1) == 2
    assert rows(heirlog, "transactions", "find-hanging", NOW) == []


def test_a_hanging_transaction_is_aborted_by_its_producer(heirlog: Heirlog, client: Client) -> None:
    topic = create(client, "by-producer")
    write_hanging(client, topic, 0, UNKNOWN_PRODUCER, epoch=3)
    where = ("--topic", topic, "--partition", "0")
    (shown,) = rows(heirlog, "transactions", "describe-producers", *where)
    assert shown["transaction_start_offset"] == 0
    command = ("transactions", "abort", *where, "--producer-id", str(UNKNOWN_PRODUCER))
    older = heirlog(*command, "--producer-epoch", "2", "--coordinator-epoch", "-1")
    assert older.code == 1 and "INVALID_PRODUCER_EPOCH" in older.err
    assert heirlog(*command, "--producer-epoch", "3", "--coordinator-epoch", "-1").code == 0
    assert last_stable_offset(client, topic, 0) == 2
    for broker in ("1", "2"):
        (shown,) = rows(heirlog, "transactions", "describe-producers", *where, "--broker", broker)
        assert (shown["producer_id"], shown["transaction_start_offset"]) == (UNKNOWN_PRODUCER, None)


def test_an_open_transaction_is_not_hanging_and_is_not_aborted(
    heirlog: Heirlog, client: Client, cluster: Cluster
) -> None:
    topic = create(client, "open")
    producer = transactional(cluster, "open-one")
    producer.begin_transaction()
    producer.produce(topic, b"mine", partition=0)
    producer.flush(LIMIT_S)
    assert rows(heirlog, "transactions", "find-hanging", NOW) == []
    command = ("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    refused = heirlog(*command)
    assert refused.code == 1 and "force-terminate open-one" in refused.err
    assert last_stable_offset(client, topic, 0) == 0
    producer.commit_transaction(LIMIT_S)
    eventually(lambda: last_stable_offset(client, topic, 0) == 2, "the marker")


def _described_as(heirlog: Heirlog, transactional_id: str, state: str) -> list[dict[str, Any]]:
    return [row for row in rows(heirlog, "transactions", "describe", transactional_id) if row["state"] == state]


def test_an_open_transaction_is_ended_by_force_and_its_producer_is_fenced(
    heirlog: Heirlog, client: Client, cluster: Cluster
) -> None:
    topic = create(client, "left")
    producer = transactional(cluster, "left-one")
    producer.begin_transaction()
    producer.produce(topic, b"left", partition=0)
    producer.flush(LIMIT_S)
    (listed,) = rows(heirlog, "transactions", "list", "--state", "Ongoing", "--transactional-id-pattern", "left-.*")
    (described,) = rows(heirlog, "transactions", "describe", "left-one")
    assert (listed["transactional_id"], described["state"], described["partitions"]) == (
        "left-one",
        "Ongoing",
        "left-0",
    )
    assert listed["producer_id"] == described["producer_id"] and described["duration_ms"] is not None
    assert heirlog("transactions", "force-terminate", "left-one").code == 0
    eventually(lambda: last_stable_offset(client, topic, 0) == 2, "the marker")
    with pytest.raises(KafkaException):
        producer.commit_transaction(LIMIT_S)
    assert not committed_values(cluster, topic, [0])
    (described,) = rows(heirlog, "transactions", "describe", "left-one")
    assert (described["partitions"], described["start_ms"]) == ("", None)
    later = transactional(cluster, "left-one")
    later.begin_transaction()
    later.produce(topic, b"later", partition=0)
    later.commit_transaction(LIMIT_S)
    (described,) = eventually(lambda: _described_as(heirlog, "left-one", "CompleteCommit"))
    assert described["start_ms"] is not None and described["duration_ms"] is None, "it does not grow any more"
    unknown = heirlog("transactions", "force-terminate", "nobody")
    assert unknown.code == 1 and "transactions list" in unknown.err
    assert rows(heirlog, "transactions", "list", "--transactional-id-pattern", "nobody") == []


def test_a_transaction_that_another_system_decides_is_shown_and_ended_only_by_force(
    heirlog: Heirlog, client: Client
) -> None:
    topic, name = create(client, "prepared"), "prepared-one"

    def ask(request: Any) -> Any:
        answer = client.send_to_coordinator(name, request, error_code=lambda got: got.error_code, key_type=TRANSACTION)
        assert answer.error_code == 0, answer
        return answer

    mine = ask(InitProducerIdRequest(transactional_id=name, enable2_pc=True))
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])
    producer = {
        "transactional_id": name,
        "producer_id": mine.producer_id,
        "producer_epoch": mine.producer_epoch,
    }
    adding = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(**producer, topics=[added])
    ask(AddPartitionsToTxnRequest(transactions=[adding]))
    write_hanging(client, topic, 0, mine.producer_id, mine.producer_epoch)

    (listed,) = rows(heirlog, "transactions", "list", "--transactional-id-pattern", name)
    (described,) = rows(heirlog, "transactions", "describe", name)
    assert (listed["state"], described["state"], described["timeout_ms"]) == ("Ongoing", "Ongoing", 2**31 - 1)
    assert rows(heirlog, "transactions", "find-hanging", "--topic", topic, NOW) == []
    refused = heirlog("transactions", "abort", f"{topic}:0", "--start-offset", "0")
    assert refused.code == 1 and f"force-terminate {name}" in refused.err
    assert heirlog("transactions", "force-terminate", name).code == 0
    eventually(lambda: last_stable_offset(client, topic, 0) == 2, "the marker")
    (described,) = rows(heirlog, "transactions", "describe", name)
    assert (described["start_ms"], described["timeout_ms"]) == (None, 30_000)


def test_a_forced_abort_breaks_the_transaction_in_one_partition(
    heirlog: Heirlog, client: Client, cluster: Cluster
) -> None:
    topic = create(client, "forced")
    producer = transactional(cluster, "forced-one")
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, b"mine", partition=partition)
    producer.flush(LIMIT_S)
    command = ("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0", "--force")
    assert heirlog(*command).code == 0
    producer.commit_transaction(LIMIT_S)
    eventually(lambda: last_stable_offset(client, topic, 1) == 2, "the marker")
    assert not committed_values(cluster, topic, [0])
    assert committed_values(cluster, topic, [1]) == {b"mine": 1}


def test_a_transaction_that_was_decided_without_the_partition_is_hanging(
    heirlog: Heirlog, client: Client, cluster: Cluster
) -> None:
    """As after an election that lost the marker: the coordinator has completed the transaction."""
    topic = create(client, "decided")
    producer = transactional(cluster, "decided-one")
    producer.begin_transaction()
    producer.produce(topic, b"mine", partition=0)
    producer.commit_transaction(LIMIT_S)
    (known,) = rows(heirlog, "transactions", "list", "--transactional-id-pattern", "decided-one")
    write_hanging(client, topic, 1, known["producer_id"])
    (found,) = rows(heirlog, "transactions", "find-hanging", "--broker", "1", NOW)
    assert (found["partition"], found["transactional_id"]) == (1, "decided-one")
    assert found["state"] == "CompleteCommit"
    assert heirlog("transactions", "abort", "--topic", topic, "--partition", "1", "--start-offset", "0").code == 0
    assert rows(heirlog, "transactions", "find-hanging", NOW) == []


def test_a_transaction_is_hanging_if_its_producer_has_a_later_one_with_the_partition(
    heirlog: Heirlog, client: Client
) -> None:
    """As after the loss of a marker whose producer continues: nothing of the later transaction is written yet."""
    topic, name = create(client, "later"), "later-one"

    def ask(request: Any) -> Any:
        answer = client.send_to_coordinator(name, request, error_code=lambda got: got.error_code, key_type=TRANSACTION)
        assert answer.error_code == 0, answer
        return answer

    earlier, later = (
        ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)) for _ in range(2)
    )
    assert (later.producer_id, later.producer_epoch) == (earlier.producer_id, earlier.producer_epoch + 1)
    write_hanging(client, topic, 0, earlier.producer_id, earlier.producer_epoch)
    producer = {
        "transactional_id": name,
        "producer_id": later.producer_id,
        "producer_epoch": later.producer_epoch,
    }
    added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])
    adding = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(**producer, topics=[added])
    ask(AddPartitionsToTxnRequest(transactions=[adding]))
    (found,) = rows(heirlog, "transactions", "find-hanging", "--topic", topic, NOW)
    assert (found["producer_epoch"], found["state"]) == (earlier.producer_epoch, "Ongoing")
    assert heirlog("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0").code == 0
    assert rows(heirlog, "transactions", "find-hanging", "--topic", topic, NOW) == []
    ask(EndTxnRequest(**producer, committed=True))


def test_the_doctor_tells_hanging_transactions_from_open_ones(
    heirlog: Heirlog, client: Client, cluster: Cluster, tmp_path: Path
) -> None:
    topic = create(client, "examined")
    producer = transactional(cluster, "examined-one")
    producer.begin_transaction()
    producer.produce(topic, b"mine", partition=0)
    producer.flush(LIMIT_S)
    write_hanging(client, topic, 1, UNKNOWN_PRODUCER)
    # files of that name come and go while the cluster runs
    shutil.copytree(cluster.data, tmp_path / "data", ignore=shutil.ignore_patterns("*.tmp"))
    found = json.loads(heirlog("doctor", str(tmp_path / "data"), "--json").out)
    findings = [
        (finding["partition"], finding["producer_id"], finding["start_offset"])
        for directory in found["directories"]
        for finding in directory["findings"]
        if finding["kind"] == "hanging-transaction" and finding["topic"] == topic
    ]
    # one for each replica
    assert findings == [(1, UNKNOWN_PRODUCER, 0)] * 2
    producer.abort_transaction(LIMIT_S)
    assert heirlog("transactions", "abort", "--topic", topic, "--partition", "1", "--start-offset", "0").code == 0


@pytest.mark.parametrize(
    "options", [(), ("--start-offset", "0", "--producer-id", "1"), ("--producer-id", "1", "--producer-epoch", "0")]
)
def test_an_abort_names_one_transaction(heirlog: Heirlog, options: tuple[str, ...]) -> None:
    outcome = heirlog("transactions", "abort", "--topic", "any", "--partition", "0", *options)
    assert outcome.code == 2 and "--start-offset" in outcome.err


@pytest.mark.parametrize("command", ["abort", "describe-producers"])
@pytest.mark.parametrize(
    "options",
    [(), ("any",), ("any:x",), (":0",), ("any:0", "--partition", "0"), ("--topic", "any"), ("any:0", "any:1")],
)
def test_a_command_is_for_one_partition(heirlog: Heirlog, command: str, options: tuple[str, ...]) -> None:
    outcome = heirlog("transactions", command, *options)
    assert outcome.code == 2, outcome


def test_what_does_not_exist(heirlog: Heirlog, client: Client) -> None:
    topic = create(client, "exists")
    assert heirlog("transactions", "find-hanging", "--topic", topic, "--partition", "7").code == 1
    assert heirlog("transactions", "find-hanging", "--topic", "missing").code == 1
    assert heirlog("transactions", "find-hanging", "--partition", "0").code == 2
    missing = ("--topic", "missing", "--partition", "0")
    assert "heirlog topics list" in heirlog("transactions", "describe-producers", *missing).err
    assert heirlog("transactions", "abort", *missing, "--start-offset", "0").code == 1


def test_without_every_coordinator_nothing_is_called_hanging(
    heirlog: Heirlog, client: Client, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last in this file: one broker stays away. The ids of its coordinator look unknown to all others."""
    monkeypatch.setattr("heirlog.cli.hanging_transactions.COORDINATORS_WAIT_S", 1.0)
    topic = create(client, "coordinators")
    transactional(cluster, "coordinated")
    write_hanging(client, topic, 0, UNKNOWN_PRODUCER)
    write_hanging(client, topic, 1, UNKNOWN_PRODUCER)
    cluster.kill(2)
    outcome = heirlog("transactions", "find-hanging", "--topic", topic, NOW)
    assert outcome.code == 1 and "COORDINATOR_NOT_AVAILABLE" in outcome.err
    start = ("transactions", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    assert heirlog(*start).code == 1
