"""Transactional librdkafka clients for tests of real processes: producers, readers of everything, and copiers."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from patience import eventually
from processes.observing import client_of

from heirlog.blocking import LATEST, READ_COMMITTED
from heirlog.testing.cluster import Cluster

LIMIT_S = 60
QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500}
CALL_S = 20
"""Limit of each call of a copier."""
BATCH = 50
"""Records that a copier moves in one transaction."""


def transactional(cluster: Cluster, name: str, **more: Any) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name, **QUIET, **more})
    producer.init_transactions(LIMIT_S)
    return producer


def committed_values(cluster: Cluster, topic: str, partitions: Iterable[int] = (0,)) -> Counter[bytes]:
    """What a consumer of committed records reads up to the last stable offsets of now."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reads-all",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    left = set(partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
    found: Counter[bytes] = Counter()
    deadline = time.monotonic() + LIMIT_S
    while left:
        assert time.monotonic() < deadline, f"no end of {sorted(left)}"
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found[message.value() or b""] += 1
        elif message is not None and message.error().name() == "_PARTITION_EOF":
            left.discard(message.partition())
    consumer.close()
    return found


def wait_until_decided(cluster: Cluster, topic: str, partitions: Iterable[int] = (0,)) -> None:
    """No transaction is open: the last stable offset of each partition is its high watermark."""
    places = [(topic, partition) for partition in partitions]
    with client_of(cluster) as client:

        def is_decided() -> bool:
            stable = client.list_offsets(dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
            return stable == client.list_offsets(dict.fromkeys(places, LATEST))

        eventually(is_decided, f"the markers of {topic}", LIMIT_S)


class Copier:
    """Consumes, transforms and produces, exactly once: a thread of its own.

    After an error that no retry mends, it begins again with a new consumer and a new producer of the same id.
    """

    def __init__(self, servers: str, number: int, source: str, sink: str, *, static: bool = False) -> None:
        """static: its consumer has an instance id, so that its successor need not wait until the group has noticed."""
        self._servers = servers
        self.name = f"copier-{number}"
        self._source, self._sink = source, sink
        self._membership = {"group.instance.id": self.name} if static else {}
        self._stop = threading.Event()
        self.transactions = self.restarts = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(CALL_S * 2)
        assert self.failure is None, repr(self.failure)

    def join(self) -> None:
        """As long as it runs."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                consumer = self._consumer()
                try:
                    self._copy(consumer, self._producer())
                except (KafkaException, TimeoutError):
                    self.restarts += 1
                finally:
                    consumer.close()
        except BaseException as error:
            self.failure = error
            raise

    def _consumer(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"copiers of {self._source}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                **self._membership,
                **QUIET,
            }
        )
        consumer.subscribe([self._source])
        return consumer

    def _producer(self) -> Producer:
        producer = Producer({"bootstrap.servers": self._servers, "transactional.id": self.name, **QUIET})
        producer.init_transactions(CALL_S)
        return producer

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        """Raises KafkaException for what ends this pair of clients."""
        while not self._stop.is_set():
            messages = [one for one in consumer.consume(BATCH, 0.2) if one.error() is None]
            if messages:
                self._move(messages, consumer, producer)

    def _move(self, messages: list[Message], consumer: Consumer, producer: Producer) -> None:
        producer.begin_transaction()
        for message in messages:
            producer.produce(self._sink, b"copy of " + (message.value() or b""))
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            place = message.topic() or "", message.partition() or 0
            ends[place] = max(ends.get(place, 0), (message.offset() or 0) + 1)
        offsets = [TopicPartition(*place, end) for place, end in ends.items()]
        try:
            _send_offsets(producer, offsets, consumer.consumer_group_metadata())
            producer.commit_transaction(CALL_S)
            self.transactions += 1
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                producer.abort_transaction(CALL_S)
            # also after an abort: the consumer is behind the records that were not copied
            raise


def _send_offsets(producer: Producer, offsets: list[TopicPartition], group: Any) -> None:
    """Raises KafkaException, or TimeoutError.

    librdkafka may wait without limit, whatever limit it was given: it waits for the group's coordinator to connect, and
    no timer ends that. Such a producer is left behind, and the next one of its id ends its transaction. Its consumer
    must leave the group, or others never get its partitions.
    """
    outcome: list[KafkaException | None] = []

    def send() -> None:
        try:
            producer.send_offsets_to_transaction(offsets, group, CALL_S)
        except KafkaException as error:
            outcome.append(error)
        else:
            outcome.append(None)

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    sending.join(CALL_S + 2)
    if not outcome:
        raise TimeoutError
    if outcome[0] is not None:
        raise outcome[0]
