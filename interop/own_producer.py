"""heirlog's own client as a transactional producer of Apache Kafka, at transaction.version 0 and 2.

Commits, aborts, offsets in transactions, a producer that fences another one, several writers in one transaction, and
the claims of Spark's tasks, which use epochs of transactional ids as a compare-and-set. The ledger of Spark's batches
expires with offsets.retention.minutes, and the note of the batch that was about to be committed stays.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import jars
from apache_kafka import eventually, on_one_node, started

from heirlog.blocking import LATEST, READ_COMMITTED, Client, CommittedOffset, OpenTransaction, ProducerFenced
from heirlog.client.aborted import AbortedTransactions
from heirlog.client.record_accumulator import ProducerIdAndEpoch
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.spark import ledger
from heirlog.spark.exactly_once import BatchAborted, claim
from heirlog.spark.ledger import KnownBatches
from heirlog.testing.apache_kafka import free_ports, write_properties

TOPIC = "own"
PARTITIONS = 2
LEVELS = (0, 2)
TRANSACTIONS = 20
RETENTION = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
EXPIRED_S = 180


def check() -> str:
    jars.fetch()
    played = ", ".join(f"{_at_level(level)} at transaction.version {level}" for level in LEVELS)
    _expire()
    return f"{played}, and a ledger that expired"


def _at_level(level: int) -> str:
    with _node(level) as client:
        return _played(client, level)


@contextmanager
def _node(level: int, config: Mapping[str, str] = MappingProxyType({})) -> Iterator[Client]:
    topic = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as name:
        home = Path(name)
        plain, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
        properties = {**on_one_node(home, plain, controller), "offsets.topic.num.partitions": 1, **config}
        write_properties(home, properties)
        with started(home, "--feature", f"transaction.version={level}") as node:
            node.wait_until_it_knows({1}, plain)
            with Client(plain) as client:
                answer = client.send_to_any(CreateTopicsRequest(topics=[topic])).topics[0]
                assert answer.error_code == 0, answer.error_message
                yield client


def _played(client: Client, level: int) -> str:
    with client.transactional_producer("own") as producer:
        for number in range(TRANSACTIONS):
            producer.begin()
            assert producer.opened.adds_by_writing == (level == 2)
            for partition in range(PARTITIONS):
                producer.send(TOPIC, partition, _batch(number))
            producer.send_offsets("own-group", {(TOPIC, 0): CommittedOffset(number)})
            if number % 3:
                producer.commit()
            else:
                producer.abort()
        producer.begin()
        producer.send(TOPIC, 0, _batch(1000))
        producer.flush()
        _fence(client)
        try:
            producer.commit()
            raise AssertionError("a fenced producer has committed")
        except ProducerFenced:
            producer.initialize()
        with producer.transaction():
            producer.send(TOPIC, 0, _batch(1002))
    _share(client)
    _claim(client)
    kept = [number for number in range(TRANSACTIONS) if number % 3]
    expected = sorted([*kept, *kept, 1001, 1002, 1003, 1004])
    eventually(lambda: _committed(client) == expected, f"{_committed(client)} instead of {expected}")
    assert client.committed("own-group", [(TOPIC, 0)])[TOPIC, 0].offset == kept[-1]
    return f"{TRANSACTIONS + 4} transactions"


def _fence(client: Client) -> None:
    with client.transactional_producer("own") as other, other.transaction():
        other.send(TOPIC, 1, _batch(1001))


def _share(client: Client) -> None:
    """Two writers in the transaction of a third one, which commits it."""
    owner = client.transactional_producer("shared")
    owner.initialize()
    owner.begin()
    for partition in range(PARTITIONS):
        with client.transactional_producer("shared", opened=owner.opened) as writer:
            writer.send(TOPIC, partition, _batch(1003 + partition))
            writer.flush()
    ending = client.transactional_producer("shared", opened=owner.opened)
    ending.send_offsets("shared", {(TOPIC, 0): CommittedOffset(0, metadata="batch 1")})
    ending.commit()
    owner.initialize()
    assert [entry.metadata for entry in client.committed("shared").values()] == ["batch 1"]


def _expire() -> None:
    """The ledger of a batch expires, and not the note that the next one was about to be committed."""
    with _node(LEVELS[-1], RETENTION) as client:
        _share(client)
        ledger.note(client, "shared", (TOPIC, 0), "batch 2")
        assert ledger.read(client, "shared") == KnownBatches(frozenset({"batch 1"}))
        deadline = time.monotonic() + EXPIRED_S
        while client.committed("shared"):
            assert time.monotonic() < deadline, f"the ledger is there after {EXPIRED_S} s"
            time.sleep(1)
        notes = client.committed("shared-committing").values()
        assert [note.metadata.partition(" ")[2] for note in notes] == ["batch 2"]
        assert ledger.read(client, "shared") == KnownBatches(frozenset())


def _claim(client: Client) -> None:
    for epoch in range(5):
        opened = OpenTransaction("claimed", ProducerIdAndEpoch(1, epoch), adds_by_writing=True)
        claim(client, opened)
        try:
            claim(client, opened)
        except BatchAborted:
            continue
        raise AssertionError("a task was claimed twice in a batch")


def _batch(number: int) -> bytearray:
    return encode_batch([(None, b"%d" % number, (), 0)])


def _committed(client: Client) -> list[int]:
    found: list[int] = []
    for partition in range(PARTITIONS):
        end = client.list_offsets({(TOPIC, partition): LATEST}, READ_COMMITTED)[TOPIC, partition].offset
        for part in client.fetch(TOPIC, partition, 0, end, isolation=READ_COMMITTED):
            aborted = AbortedTransactions(part.aborted)
            for position, header in walk(part.records):
                if not aborted.skips(part.records, position, header):
                    found += [int(record.value or b"") for record in decode_records(part.records, position)]
    return sorted(found)


if __name__ == "__main__":
    print(check())
