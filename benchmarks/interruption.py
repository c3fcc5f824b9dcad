"""How long acks=all stands still when a partition loses its leader, as two clients see it.

The patient one is librdkafka with its defaults: it asks for metadata once a second while a leader is away, which is
most of what it waits for. The eager one asks every 20 ms, so that what is left is the cluster's own doing: the grace
of `heirlog.broker.disconnect.grace.ms` and the election after a kill, the hand-over in a clean stop.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.gauges import Nodes
from heirlog.blocking import Client
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode

EAGER_S = 3.0
"""How long the eager client watches."""
SETTLE_S = 1.5
"""For a restarted broker to join the ISR again."""
RUNNING_S = (1.0, 3.0)
"""How long the patient client has run when the leader is killed: what it asked for at its start is answered by then,
and its timer of one second may be anywhere.
"""


def leader_of(cluster: Nodes, topic: str) -> int:
    with Client(cluster.bootstrap_servers) as client:
        return client.metadata([topic]).topics[0].partitions[0].leader_id


def patient_s(cluster: Nodes, topic: str) -> float:
    """From the SIGKILL of the leader to the first acknowledgement that follows it."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 0, "log_level": 2})
    producer.produce(topic, b"x", partition=0)
    producer.flush(30)
    time.sleep(random.uniform(*RUNNING_S))
    leader = leader_of(cluster, topic)
    cluster.kill(leader)
    started = time.monotonic()
    acknowledged: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(time.monotonic() - started)

    producer.produce(topic, b"x", partition=0, on_delivery=delivered)
    producer.flush(60)
    _bring_back(cluster, leader)
    return acknowledged[0]


def after_a_kill_s(cluster: Nodes, topic: str) -> float:
    return _longest_gap_s(cluster, topic, cluster.kill)


def after_a_clean_stop_s(cluster: Nodes, topic: str) -> float:
    return _longest_gap_s(cluster, topic, cluster.stop)


def _longest_gap_s(cluster: Nodes, topic: str, end: Callable[[int], None]) -> float:
    """The longest time between two acknowledgements of an eager client while the leader is ended."""
    leader = leader_of(cluster, topic)
    longest = 0.0
    with Client(cluster.bootstrap_servers) as client:
        ending = threading.Timer(0.3, end, (leader,))
        ending.start()
        last = started = time.monotonic()
        while last - started < EAGER_S:
            answer = client.produce(topic, 0, encode_batch([(None, b"x", (), int(time.time() * 1000))]))
            if answer.error_code != ErrorCode.NONE:
                raise RuntimeError(f"a record was refused: {answer.error_message}")
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        ending.join()
    _bring_back(cluster, leader)
    return longest


def _bring_back(cluster: Nodes, broker: int) -> None:
    cluster.start(broker)
    cluster.wait_until_ready()
    time.sleep(SETTLE_S)
