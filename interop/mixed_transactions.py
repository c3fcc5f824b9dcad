"""Transactions of four clients in one cluster, for a minute in which one broker after another is killed (SIGKILL).

    source --librdkafka--> first --aiokafka--> second --heirlog--> third --Java--> last

Each client copies what its predecessor has committed, in transactions with the offsets of its group. librdkafka and
aiokafka add partitions before they write, as clients of transaction.version 0 and 1; heirlog's client and Java's add
them by writing, with an epoch for each transaction. A client that fails begins again with the same transactional id.
In the end each topic has each record once, and no transaction is open.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import jars
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as Place
from aiokafka.errors import KafkaError as AiokafkaError
from apache_kafka import eventually
from clients import java_command
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from heirlog.blocking import LATEST, READ_COMMITTED, Client, CommittedOffset
from heirlog.client.aborted import AbortedTransactions
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import ListTransactionsRequest
from heirlog.testing import Cluster

SECONDS = 60
TOPICS = ("source", "first", "second", "third", "last")
PARTITIONS = 3
RECORDS_PER_S = 40
BATCH = 40
"""Records that a client moves in one transaction, at most."""
CALL_S = 30.0
PATIENCE_S = 180.0
IDLE_S = 0.2
KILLS_MIN = 4
CONFIG = {
    "broker.session.timeout.ms": 4_000,
    "broker.heartbeat.interval.ms": 500,
    "transaction.state.log.num.partitions": 5,
    "offsets.topic.num.partitions": 5,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
}
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500}


class Copier:
    """A thread; what `failures` names ends its clients, and new ones continue."""

    failures: tuple[type[BaseException], ...] = ()

    def __init__(self, servers: str, source: str, sink: str) -> None:
        self.servers, self.source, self.sink = servers, source, sink
        self.name = f"copies-{source}"
        """Of its group, and its transactional id."""
        self.stopped = threading.Event()
        self.transactions = self.restarts = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def copy(self) -> None:
        """Until it is stopped."""
        raise NotImplementedError

    def stop(self) -> str:
        self.stopped.set()
        self._thread.join(2 * CALL_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self._failure is not None:
            raise AssertionError(f"{self.name} has failed") from self._failure
        assert self.transactions, f"{self.name} has committed nothing"
        return f"{type(self).__name__} {self.transactions} transactions, {self.restarts} times again"

    def _run(self) -> None:
        try:
            while not self.stopped.is_set():
                try:
                    self.copy()
                except self.failures:
                    self.restarts += 1
        except BaseException as error:
            self._failure = error


class Librdkafka(Copier):
    failures = (KafkaException,)

    def copy(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": self.name, **QUIET})
        producer.init_transactions(CALL_S)
        consumer = reader_of(self.servers, self.name, {"session.timeout.ms": 6_000})
        try:
            consumer.subscribe([self.source])
            while not self.stopped.is_set():
                messages = [one for one in consumer.consume(BATCH, IDLE_S) if one.error() is None]
                if messages:
                    self._move(messages, consumer, producer)
        finally:
            consumer.close()

    def _move(self, messages: list[Any], consumer: Consumer, producer: Producer) -> None:
        producer.begin_transaction()
        ends: dict[int, int] = {}
        for message in messages:
            producer.produce(self.sink, message.value())
            ends[message.partition()] = message.offset() + 1
        offsets = [TopicPartition(self.source, partition, end) for partition, end in ends.items()]
        try:
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), CALL_S)
            producer.commit_transaction(CALL_S)
            self.transactions += 1
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(CALL_S)
            # also after an abort: the consumer is behind the records that were not copied
            raise


class Aiokafka(Copier):
    failures = (AiokafkaError, asyncio.TimeoutError)

    def copy(self) -> None:
        asyncio.run(self._copy())

    async def _copy(self) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, transactional_id=self.name)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers,
            group_id=self.name,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        # the producer first: afterwards the offsets of its predecessor are decided
        await producer.start()
        try:
            await consumer.start()
            try:
                consumer.assign([Place(self.source, partition) for partition in range(PARTITIONS)])
                while not self.stopped.is_set():
                    found = await consumer.getmany(timeout_ms=int(IDLE_S * 1000), max_records=BATCH)
                    if found:
                        await asyncio.wait_for(self._move(found, producer), CALL_S)
            finally:
                await consumer.stop()
        finally:
            with suppress(*self.failures):
                await asyncio.wait_for(producer.stop(), CALL_S)

    async def _move(self, found: dict[Place, list[Any]], producer: AIOKafkaProducer) -> None:
        async with producer.transaction():
            for messages in found.values():
                for message in messages:
                    await producer.send(self.sink, message.value)
            ends = {place: messages[-1].offset + 1 for place, messages in found.items()}
            await producer.send_offsets_to_transaction(ends, self.name)
        self.transactions += 1


class Heirlog(Copier):
    failures = (KafkaError, OSError)

    def copy(self) -> None:
        places = [(self.source, partition) for partition in range(PARTITIONS)]
        with (
            Client(self.servers, timeout_s=CALL_S) as client,
            client.transactional_producer(self.name, delivery_timeout_s=CALL_S) as producer,
        ):
            committed = client.committed(self.name, places)
            at = {place: max(committed[place].offset, 0) if place in committed else 0 for place in places}
            while not self.stopped.is_set():
                values: list[bytes] = []
                reached: dict[tuple[str, int], int] = {}
                for place in places:
                    values += self._read(client, place, at[place], reached)
                if not reached:
                    self.stopped.wait(IDLE_S)
                    continue
                with producer.transaction():
                    for number, value in enumerate(values):
                        batch = encode_batch([(None, value, (), int(time.time() * 1000))])
                        producer.send(self.sink, number % PARTITIONS, batch)
                    producer.send_offsets(
                        self.name, {place: CommittedOffset(offset) for place, offset in reached.items()}
                    )
                at |= reached
                self.transactions += 1

    def _read(
        self, client: Client, place: tuple[str, int], start: int, reached: dict[tuple[str, int], int]
    ) -> list[bytes]:
        """What is committed from `start` on, a little at once; `reached` gets where it ends."""
        end = client.list_offsets({place: LATEST}, READ_COMMITTED)[place].offset
        values: list[bytes] = []
        for part in client.fetch(*place, start, end, isolation=READ_COMMITTED, max_bytes=4096):
            values += values_of(part)
            reached[place] = part.next_offset
            break
        return values


def values_of(part: Any) -> list[bytes]:
    """Of the records that are committed. part: of an answer to a Fetch."""
    aborted = AbortedTransactions(part.aborted)
    return [
        record.value or b""
        for position, header in walk(part.records)
        if not aborted.skips(part.records, position, header)
        for record in decode_records(part.records, position)
    ]


class Java:
    """A program of its own."""

    def __init__(self, servers: str, records: int, place: Path) -> None:
        self._output = place / "java"
        command = java_command("TransactionalClient", "move", servers, str(records), *TOPICS[-2:])
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)

    def finish(self) -> str:
        code = self._process.wait(PATIENCE_S)
        lines = self._output.read_text().splitlines()
        assert code == 0 and lines[-1] == "done", "\n".join(lines[-30:])
        return f"Java {sum(line.startswith('copied') for line in lines)} transactions"

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def check() -> str:
    jars.fetch()
    # a line for each broker that it does not reach
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    seconds = float(os.environ.get("MIXED_SECONDS", SECONDS))
    seed = random.randrange(2**32)
    print(f"interop: transactions of four clients: seed {seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place,
        Cluster(nodes=3, config=CONFIG) as running,
        ExitStack() as ended,
    ):
        servers = running.bootstrap_servers
        for topic in TOPICS:
            running.create_topic(topic, partitions=PARTITIONS)
        records = int(seconds * RECORDS_PER_S)
        java = Java(servers, records, Path(place))
        ended.callback(java.end)
        copiers: list[Copier] = []
        for kind, topics in ((Librdkafka, TOPICS[:2]), (Aiokafka, TOPICS[1:3]), (Heirlog, TOPICS[2:4])):
            copiers.append(kind(servers, *topics))
            ended.callback(copiers[-1].stopped.set)
        source = threading.Thread(target=fill, args=(servers, records, seconds), daemon=True)
        source.start()
        kills = kill_in_turn(running, random.Random(seed), seconds)
        source.join(PATIENCE_S)
        said = [java.finish()]
        said = [*(copier.stop() for copier in copiers), *said]
        wanted = Counter(b"%d" % number for number in range(records))
        for topic in TOPICS:
            found = read(servers, topic)
            assert found == wanted, (
                f"{topic}: {(wanted - found).total()} records missing, {(found - wanted).most_common(3)} too often"
            )
        decided(running)
    assert kills >= KILLS_MIN, f"only {kills} brokers were killed"
    return f"{records} records through each, {kills} brokers killed: {'; '.join(said)}"


def fill(servers: str, records: int, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
    began = time.monotonic()
    for number in range(records):
        producer.produce("source", b"%d" % number, partition=number % PARTITIONS)
        while (ahead_s := began + number * seconds / records - time.monotonic()) > 0:
            producer.poll(ahead_s)
    assert producer.flush(PATIENCE_S) == 0


def kill_in_turn(running: Cluster, chance: random.Random, seconds: float) -> int:
    """How many brokers were killed; all of them run in the end."""
    until, kills = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        time.sleep(chance.random())
        victim = chance.choice(running.brokers)
        running.kill(victim)
        kills += 1
        # with and without a new leader and coordinator
        time.sleep(chance.choice((0.0, 0.5, 2.0)))
        running.start(victim)
        running.wait_until_in_sync()
    return kills


def reader_of(servers: str, group: str, more: dict[str, Any]) -> Consumer:
    """Of committed records, from the first one that its group has not committed."""
    settings = {"bootstrap.servers": servers, "group.id": group, "isolation.level": "read_committed"}
    return Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest", **QUIET, **more})


def read(servers: str, topic: str) -> Counter[bytes]:
    """What librdkafka reads up to the last stable offsets of now."""
    consumer = reader_of(servers, "reads-all", {"enable.partition.eof": True})
    found: Counter[bytes] = Counter()
    ended: set[int] = set()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    deadline = time.monotonic() + PATIENCE_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"{topic}: no end of some of its partitions"
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found[message.value() or b""] += 1
        elif message is not None and message.error().name() == "_PARTITION_EOF":
            ended.add(message.partition())
    consumer.close()
    return found


def decided(running: Cluster) -> None:
    """No transaction stays open: no coordinator has one, and each partition is readable to its end."""
    places = [(topic, partition) for topic in TOPICS for partition in range(PARTITIONS)]
    with Client(running.bootstrap_servers) as client:

        def states() -> set[str]:
            answers = [client.send_to_broker(broker, ListTransactionsRequest()) for broker in running.brokers]
            return {one.transaction_state for answer in answers for one in answer.transaction_states}

        def nothing_open() -> bool:
            stable = client.list_offsets(dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
            is_complete = states() <= {"Empty", "CompleteCommit", "CompleteAbort"}
            return is_complete and stable == client.list_offsets(dict.fromkeys(places, LATEST))

        eventually(nothing_open, "no transaction is open")
