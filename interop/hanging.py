"""kafka-transactions against heirlog: an open transaction, one that was ended by force, and a hanging one.

The hanging transaction is a batch that the partition's leader accepts while `transaction.partition.verification.enable`
is false. `heirlog transactions find-hanging` has to name the same one.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from apache_kafka import eventually
from clients import VENV
from confluent_kafka import Producer

from heirlog.blocking import LATEST, READ_COMMITTED, Client
from heirlog.client.call import Send
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.messages import ProduceRequest

if TYPE_CHECKING:
    from heirlog.testing import Cluster
    from tools import Tools

LIMIT_S = 30
UNKNOWN_PRODUCER = 987_654_321
NOT_BY_PRODUCE = 11
"""The newest version of Produce that does not add its partition to the transaction."""
VERIFIED = "transaction.partition.verification.enable"


def transactions(tools: Tools, running: Cluster) -> str:
    nothing = tools("kafka-transactions", "list")
    assert nothing.split() == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"], nothing
    tools.create("ended", ",".join(str(broker) for broker in running.brokers))
    _open_one_is_ended_by_force(tools, running)
    defaults = ("--entity-type", "brokers", "--entity-default")
    tools("kafka-configs", "--alter", *defaults, "--add-config", f"{VERIFIED}=false")
    try:
        with Client(running.bootstrap_servers) as client:
            _hanging_one_is_aborted(tools, client)
    finally:
        tools("kafka-configs", "--alter", *defaults, "--delete-config", VERIFIED)
    return "kafka-transactions"


def _open_one_is_ended_by_force(tools: Tools, running: Cluster) -> None:
    producer = Producer({"bootstrap.servers": running.bootstrap_servers, "transactional.id": "left"})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("ended", b"left", partition=0)
    producer.flush(LIMIT_S)
    (listed,) = _rows(tools("kafka-transactions", "list"))
    assert (listed["TransactionalId"], listed["TransactionState"]) == ("left", "Ongoing"), listed
    described = tools("kafka-transactions", "describe", "--transactional-id", "left")
    (row,) = _rows(described)
    assert row["CoordinatorId"] == listed["Coordinator"] and row["TopicPartitions"] == "ended-0", described
    (open_one,) = _producers(tools, 0)
    assert open_one["ProducerId"] == listed["ProducerId"], open_one
    assert open_one["CurrentTransactionStartOffset"] == "0", open_one
    said = tools("kafka-transactions", "forceTerminateTransaction", "--transactionalId", "left")
    assert not said.strip(), said
    eventually(
        lambda: _producers(tools, 0)[0]["CurrentTransactionStartOffset"] == "None",
        "the marker of the ended transaction",
    )


def _hanging_one_is_aborted(tools: Tools, client: Client) -> None:
    eventually(lambda: _is_written(client), "a broker that does not verify transactions")
    (open_one,) = _producers(tools, 1)
    assert open_one["ProducerId"] == str(UNKNOWN_PRODUCER), open_one
    # candidates are older than the limit, and the limit counts in minutes
    search = ("find-hanging", "--topic", "ended", "--max-transaction-timeout", "0")
    found = eventually(lambda: _rows(tools("kafka-transactions", *search)), "the hanging transaction")
    heirlog = [str(VENV / "heirlog"), "transactions", *search, "--json", "--bootstrap-server", tools.servers]
    own = json.loads(subprocess.run(heirlog, capture_output=True, text=True, check=True).stdout)
    names = {"Partition": "partition", "ProducerId": "producer_id", "StartOffset": "start_offset"}
    assert [[row[name] for name in names] for row in found] == [
        [str(row[name]) for name in names.values()] for row in own
    ], (found, own)
    said = tools("kafka-transactions", "abort", "--topic", "ended", "--partition", "1", "--start-offset", "0")
    assert not said.strip(), said
    assert client.list_offsets({("ended", 1): LATEST}, isolation=READ_COMMITTED)["ended", 1].offset == 2
    assert not _rows(tools("kafka-transactions", *search))


def _is_written(client: Client) -> bool:
    """Whether the leader of partition 1 accepted a batch whose transaction no coordinator knows."""
    batch = encode_batch(
        [(None, b"hanging", (), int(time.time() * 1000) - 1)],
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    data = ProduceRequest.PartitionProduceData(index=1, records=batch)
    topics = [ProduceRequest.TopicProduceData(name="ended", partition_data=[data])]
    request = ProduceRequest(transactional_id="nobody", acks=-1, timeout_ms=10_000, topic_data=topics)
    leader = client.metadata(["ended"]).topics[0].partitions[1].leader_id
    send = Send(client.brokers()[leader], request, LIMIT_S, NOT_BY_PRODUCE)

    def call() -> Generator[Send, Any, Any]:
        return (yield send)

    answer: Any = client._run(call())
    return answer.responses[0].partition_responses[0].error_code == 0


def _producers(tools: Tools, partition: int) -> list[dict[str, str]]:
    return _rows(tools("kafka-transactions", "describe-producers", "--topic", "ended", "--partition", str(partition)))


def _rows(said: str) -> list[dict[str, str]]:
    """The table that the tool printed."""
    headings, *lines = [re.split(r"\s+", line.strip()) for line in said.splitlines() if line.strip()]
    return [dict(zip(headings, line, strict=False)) for line in lines]
