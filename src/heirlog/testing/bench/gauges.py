"""What a cluster's processes cost, as the operating system counts it, and what their log files hold."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from heirlog.protocol.batch import HEADER_SIZE, read_header
from heirlog.testing.cluster import Cluster

MIB = 1 << 20
SETTLE_S = 10.0


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_s: float
    memory_bytes: int

    @staticmethod
    def of(pids: list[int]) -> Cost:
        processes = [psutil.Process(pid) for pid in pids]
        cpu = [process.cpu_times() for process in processes]
        return Cost(
            sum(times.user + times.system for times in cpu), sum(process.memory_info().rss for process in processes)
        )


def brokers(cluster: Cluster) -> list[int]:
    return [cluster.pids[node] for node in cluster.brokers]


def everything(cluster: Cluster) -> list[int]:
    return list(cluster.pids.values())


def _replicas(cluster: Cluster, topic: str, partition: int) -> list[list[Path]]:
    """The segment files of each replica."""
    directories = sorted(cluster.data.glob(f"broker-*/**/{topic}-{partition}"))
    return [sorted(directory.glob("*.log")) for directory in directories]


def wait_for_followers(cluster: Cluster, topic: str, partitions: int) -> None:
    """Until all replicas are of one length: the work of followers belongs to the cost of a load."""
    deadline = time.monotonic() + SETTLE_S
    for partition in range(partitions):
        while len({sum(file.stat().st_size for file in files) for files in _replicas(cluster, topic, partition)}) > 1:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the replicas of {topic}-{partition} differ after {SETTLE_S:g} s")
            time.sleep(0.005)


def batches(cluster: Cluster, topic: str, partitions: int) -> int:
    """Record batches in one replica of each partition."""
    return sum(_batches_in(file) for partition in range(partitions) for file in _replicas(cluster, topic, partition)[0])


def _batches_in(path: Path) -> int:
    count = position = 0
    with path.open("rb") as file:
        while len(header := file.read(HEADER_SIZE)) == HEADER_SIZE:
            position += read_header(header).size
            file.seek(position)
            count += 1
    return count
