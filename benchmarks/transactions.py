"""Transactions of librdkafka producers, each with what it cost the brokers.

A transaction has ten records of 1 KiB over three partitions with RF 3 and min.insync.replicas 2. Commits are timed from
the moment when all records are acknowledged, so a figure holds what transactions add: the decision of the coordinator.
The cost includes the markers, which follow the answer.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks import load
from benchmarks.gauges import Cost, Nodes, everything
from heirlog.local.cluster import Cluster

RECORDS = 10
VALUE_BYTES = 1_024
MARKERS_S = 0.5
"""After the last commit: its markers are written by then."""
TIMEOUT_S = 30.0
PRODUCERS = (1, 10)
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class TransactionLoad:
    count: int
    seconds: float
    broker_cpu_s: float
    commits_ms: list[float]

    @property
    def per_s(self) -> float:
        return self.count / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Of each transaction, on all nodes together."""
        return 1e3 * self.broker_cpu_s / self.count

    @property
    def commit_p50_ms(self) -> float:
        return statistics.median(self.commits_ms)


class _Committer(threading.Thread):
    """One producer, one transaction after the other."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        config = {"bootstrap.servers": servers, "log_level": 2, "linger.ms": 0}
        self._producer = Producer({**config, "transactional.id": f"bench-{next(_NUMBERS)}"})
        self._producer.init_transactions(TIMEOUT_S)
        self._topic = topic
        self.until = 0.0
        self.commits_ms: list[float] = []
        self.failure: Exception | None = None
        self.once()
        self.commits_ms.clear()

    def once(self) -> None:
        self._producer.begin_transaction()
        for number in range(RECORDS):
            self._producer.produce(self._topic, bytes(VALUE_BYTES), partition=number % load.PARTITIONS)
        self._producer.flush(TIMEOUT_S)
        began = time.perf_counter()
        self._producer.commit_transaction(TIMEOUT_S)
        self.commits_ms.append(1e3 * (time.perf_counter() - began))

    def run(self) -> None:
        try:
            while time.monotonic() < self.until:
                self.once()
        except Exception as failure:  # for the thread that measures
            self.failure = failure


def measure(nodes: Nodes, topic: str, *, producers: int, seconds: float) -> TransactionLoad:
    """So many producers at the same time. Raises what a producer raises."""
    committers = [_Committer(nodes.bootstrap_servers, topic) for _ in range(producers)]
    time.sleep(MARKERS_S)
    before, began = Cost.of(everything(nodes)).cpu_s, time.monotonic()
    for committer in committers:
        committer.until = began + seconds
        committer.start()
    for committer in committers:
        committer.join(seconds + TIMEOUT_S)
        if committer.failure is not None:
            raise committer.failure
    taken_s = time.monotonic() - began
    time.sleep(MARKERS_S)
    cost_s = Cost.of(everything(nodes)).cpu_s - before
    commits_ms = [wait for committer in committers for wait in committer.commits_ms]
    return TransactionLoad(len(commits_ms), taken_s, cost_s, commits_ms)


def report(rounds: int, seconds: float, row: Callable[..., None]) -> None:
    """heirlog alone."""
    with Cluster(nodes=3, ledger=False) as nodes:
        load.create(nodes, "transactions", 3)
        for producers in PRODUCERS:
            runs = [measure(nodes, "transactions", producers=producers, seconds=seconds) for _ in range(rounds)]
            row(
                f"{producers} producer{'s' if producers > 1 else ''}",
                f"{statistics.median(run.per_s for run in runs):.0f}",
                f"{statistics.median(run.commit_p50_ms for run in runs):.2f} ms",
                f"{statistics.median(run.cpu_ms for run in runs):.2f} ms",
            )
