"""Every node is killed at once, under load, and comes back: each client goes on by itself.

A client that got an answer without brokers while the first broker came back asked no broker again for minutes. So each
activity of each client has to succeed again soon after the cluster is ready, with the objects that it had before.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from patience import eventually

from heirlog.testing.cluster import Cluster

TOPIC = "t"
OUTAGES = 2
WITHIN_S = 30.0
"""After the cluster is ready. librdkafka asks again within 10 s at most, and its group within 10 s after that."""
POLL_S = 0.5
PAUSE_S = 0.05


class Activity:
    """What one client does again and again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.succeeded = 0
        self.last_error = ""

    def attempt(self, step: Callable[[], Any]) -> None:
        try:
            step()
        except Exception as error:
            # clients report an outage in many ways: only what follows it counts
            self.last_error = repr(error)
        else:
            self.succeeded += 1


class Load:
    """The activities of all clients, each in a thread of its own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.activities: list[Activity] = []
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._closes: list[Callable[[], Any]] = []

    def repeat(self, name: str, step: Callable[[], Any]) -> None:
        activity = Activity(name)
        self.activities.append(activity)

        def run() -> None:
            while not self._over.wait(PAUSE_S):
                activity.attempt(step)

        self._run(run)

    def _run(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def librdkafka(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})

        def produce() -> None:
            outcome: list[Any] = []
            producer.produce(TOPIC, b"value", on_delivery=lambda error, message: outcome.append(error))
            while not outcome and not self._over.is_set():
                producer.poll(POLL_S)
            assert outcome == [None], outcome

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "librdkafka", "enable.auto.commit": False})
        self._closes.append(consumer.close)
        consumer.subscribe([TOPIC])

        def commit() -> None:
            message = consumer.poll(POLL_S)
            assert message is not None and message.error() is None
            consumer.commit(message, asynchronous=False)

        admin, numbers = AdminClient({"bootstrap.servers": self.servers}), itertools.count()

        def create() -> None:
            name = f"new-{next(numbers)}"
            admin.create_topics([NewTopic(name, 1, 1)], request_timeout=10)[name].result(15)
            self._over.wait(POLL_S)

        self.repeat("librdkafka produces", produce)
        self.repeat("librdkafka commits", commit)
        self.repeat("librdkafka creates topics", create)

    def kafka_python(self) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self.servers, acks="all")
        consumer = kafka.KafkaConsumer(
            TOPIC, bootstrap_servers=self.servers, group_id="kafka-python", enable_auto_commit=False
        )
        self._closes += [lambda: producer.close(WITHIN_S), consumer.close]

        def commit() -> None:
            assert consumer.poll(POLL_S * 1000)
            consumer.commit()

        self.repeat("kafka-python produces", lambda: producer.send(TOPIC, b"value").get(WITHIN_S))
        self.repeat("kafka-python commits", commit)

    def aiokafka(self) -> None:
        producing, committing = Activity("aiokafka produces"), Activity("aiokafka commits")
        self.activities += [producing, committing]

        async def repeat(activity: Activity, step: Callable[[], Any]) -> None:
            while not self._over.is_set():
                try:
                    await asyncio.wait_for(step(), WITHIN_S)
                except Exception as error:
                    activity.last_error = repr(error)
                else:
                    activity.succeeded += 1
                await asyncio.sleep(PAUSE_S)

        async def work() -> None:
            producer = AIOKafkaProducer(bootstrap_servers=self.servers, acks="all")
            consumer = AIOKafkaConsumer(
                TOPIC, bootstrap_servers=self.servers, group_id="aiokafka", enable_auto_commit=False
            )
            await producer.start()
            await consumer.start()

            async def commit() -> None:
                assert await consumer.getmany(timeout_ms=int(POLL_S * 1000))
                await consumer.commit()

            await asyncio.gather(
                repeat(producing, lambda: producer.send_and_wait(TOPIC, b"value")), repeat(committing, commit)
            )
            await producer.stop()
            await consumer.stop()

        self._run(lambda: asyncio.run(work()))

    def wait_for_all(self, times: int = 2) -> None:
        """Until every activity has succeeded so often again."""
        before = {activity.name: activity.succeeded for activity in self.activities}

        def behind() -> list[tuple[str, str]]:
            return [(a.name, a.last_error) for a in self.activities if a.succeeded < before[a.name] + times]

        deadline = time.monotonic() + WITHIN_S
        while behind() and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        assert not behind(), behind()

    def end(self) -> None:
        """Without it kafka-python's threads would look for these brokers until the process ends."""
        self._over.set()
        for thread in self._threads:
            thread.join(WITHIN_S)
        # some wait for ever for a broker that does not come back
        closing = [threading.Thread(target=close, daemon=True) for close in self._closes]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(WITHIN_S)


@pytest.fixture(params=[1, 3], ids=["the only broker", "three brokers"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    # a broker that was killed together with its controller comes back when its session has ended
    sessions = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 1000}
    with Cluster(nodes=request.param, config=sessions) as running:
        yield running


def full_outage(cluster: Cluster) -> None:
    for node in cluster.node_ids:
        cluster.kill(node)
    for node in cluster.node_ids:
        cluster.start(node)
    cluster.wait_until_ready()


def test_every_client_goes_on_after_full_outages(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, 3, len(cluster.brokers))])[TOPIC].result(30)
    with ExitStack() as stack:
        load = Load(servers)
        stack.callback(load.end)
        load.librdkafka()
        load.kafka_python()
        load.aiokafka()
        eventually(lambda: all(activity.succeeded for activity in load.activities))
        for _ in range(OUTAGES):
            full_outage(cluster)
            load.wait_for_all()
