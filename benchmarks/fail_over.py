"""How long no change of the metadata is accepted when the active controller is lost.

Three controllers and three brokers, each in a process, all at their defaults. The active controller is killed (SIGKILL:
the kernel closes its connections) or paused (SIGSTOP: it answers nothing, as a machine that hangs). Measured is the
time from there to the first CreateTopics that a broker answers without an error. A new attempt starts every 100 ms on a
connection of its own, whatever became of the earlier ones, so that no client's timeout is measured.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from benchmarks.gauges import Nodes
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import CreateTopicsRequest, DescribeQuorumRequest, DescribeQuorumResponse
from heirlog.protocol.types import METADATA_TOPIC

ROUNDS = 5
ATTEMPT_EVERY_S = 0.1
TIMEOUT_S = 60.0
POLL_S = 0.1
SETTLE_S = 2.0
"""After every voter has caught up: brokers connect to a new leader again."""


class Apart(Nodes, Protocol):
    """Nodes whose controllers have processes of their own: `Cluster` or `ApacheKafkaApart`."""

    @property
    def controllers(self) -> Sequence[int]: ...

    def active_controller(self) -> int | None: ...

    def pause(self, node: int) -> None: ...

    def resume(self, node: int) -> None: ...


class Waits(NamedTuple):
    """Seconds."""

    median: float
    longest: float

    @staticmethod
    def of(seconds: Sequence[float]) -> Waits:
        return Waits(statistics.median(seconds), max(seconds))


def after_a_kill_s(nodes: Apart) -> float:
    return _without_leader_s(nodes, nodes.kill, nodes.start)


def after_a_pause_s(nodes: Apart) -> float:
    return _without_leader_s(nodes, nodes.pause, nodes.resume)


def _without_leader_s(nodes: Apart, lose: Callable[[int], None], bring_back: Callable[[int], None]) -> float:
    lost = _active(nodes)
    began = time.monotonic()
    lose(lost)
    waited_s = _first_accepted(nodes.bootstrap_servers) - began
    back_ms = int(time.time() * 1000)
    bring_back(lost)
    _wait_for_all_voters(nodes, back_ms)
    time.sleep(SETTLE_S)
    return waited_s


def _active(nodes: Apart) -> int:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if (active := nodes.active_controller()) is not None:
            return active
        time.sleep(POLL_S)
    raise RuntimeError("no controller became active")


def _first_accepted(bootstrap_servers: str) -> float:
    """When the first of many attempts was accepted."""
    accepted: queue.SimpleQueue[float] = queue.SimpleQueue()
    ended = threading.Event()
    threads: list[threading.Thread] = []
    deadline = time.monotonic() + TIMEOUT_S
    brokers = bootstrap_servers.split(",")
    try:
        while time.monotonic() < deadline:
            broker = brokers[len(threads) % len(brokers)]
            thread = threading.Thread(target=_attempt, args=(broker, accepted, ended), daemon=True)
            thread.start()
            threads.append(thread)
            try:
                return accepted.get(timeout=ATTEMPT_EVERY_S)
            except queue.Empty:
                continue
        raise RuntimeError(f"no topic could be created for {TIMEOUT_S:g} s")
    finally:
        ended.set()
        for thread in threads:
            thread.join(TIMEOUT_S)


def _attempt(broker: str, accepted: queue.SimpleQueue[float], ended: threading.Event) -> None:
    """Repeated for as long as it is refused."""
    name = f"topic-{time.monotonic_ns()}"
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    while not ended.is_set():
        try:
            with Client(broker, timeout_s=TIMEOUT_S) as client:
                answer = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=int(1_000 * TIMEOUT_S)))
        except (OSError, KafkaError):
            time.sleep(POLL_S)
            continue
        if not answer.topics[0].error_code:
            accepted.put(time.monotonic())
            return
        time.sleep(POLL_S)


def _wait_for_all_voters(nodes: Apart, since_ms: int) -> None:
    """Until each of them has caught up since this wall time."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        voters = _voters(nodes)
        if len(voters) == len(nodes.controllers) and all(v.last_caught_up_timestamp > since_ms for v in voters):
            return
        time.sleep(POLL_S)
    raise RuntimeError("a controller did not catch up")


def _voters(nodes: Apart) -> list[DescribeQuorumResponse.ReplicaState]:
    """Empty while no leader answers."""
    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    try:
        with Client(nodes.bootstrap_servers, timeout_s=TIMEOUT_S) as client:
            answer = client.send_to_any(nested(topics=[asked]))
    except (OSError, KafkaError):
        return []
    return [voter for topic in answer.topics for partition in topic.partitions for voter in partition.current_voters]


LOSSES = (("killed", after_a_kill_s), ("paused", after_a_pause_s))
"""What happens to the active controller."""


def report(rounds: int) -> None:
    """heirlog alone."""
    print("\n| no CreateTopics is accepted after the active controller was | median s | longest s |\n|---|---|---|")
    with Cluster(nodes=3, controllers=3, ledger=False) as nodes:
        for lost, measure in LOSSES:
            waits = Waits.of([measure(nodes) for _ in range(rounds)])
            print(f"| {lost} | {waits.median:.2f} | {waits.longest:.2f} |", flush=True)
