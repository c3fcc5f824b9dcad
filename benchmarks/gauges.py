"""What a cluster's processes cost, as the operating system counts it, and what their log files hold."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from heirlog.protocol.batch import HEADER_SIZE, read_header

MIB = 1 << 20
SETTLE_S = 10.0
SCHEDULER_CLOCK = 2
"""The kernel's number of a process's clock (CPUCLOCK_SCHED of include/linux/posix-timers.h, clock_getcpuclockid(3))."""


class Loaded(Protocol):
    """Processes that a client puts a load on, and where they keep their logs."""

    @property
    def bootstrap_servers(self) -> str: ...

    @property
    def data(self) -> Path: ...

    @property
    def pids(self) -> Mapping[int, int]: ...

    @property
    def brokers(self) -> Sequence[int]: ...


class Nodes(Loaded, Protocol):
    """Node processes of heirlog (`Cluster`) or of Apache Kafka (`ApacheKafka`): what a measurement needs of them."""

    def start(self, node: int) -> None: ...

    def stop(self, node: int) -> None: ...

    def kill(self, node: int) -> None: ...

    def wait_until_ready(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_s: float
    kernel_s: float
    """The part of it that the kernel took, in hundredths of a second."""
    memory_bytes: int

    @staticmethod
    def of(pids: list[int]) -> Cost:
        processes = [psutil.Process(pid) for pid in pids]
        return Cost(
            sum(map(cpu_seconds, pids)),
            sum(process.cpu_times().system for process in processes),
            sum(process.memory_info().rss for process in processes),
        )


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process so far, ended ones too: in nanoseconds on Linux, in hundredths of a second elsewhere.

    150 MB are read for six hundredths of a second of a broker's time, so hundredths are too coarse to compare.
    """
    if sys.platform == "linux":
        return time.clock_gettime((~pid << 3) | SCHEDULER_CLOCK)
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def shared_memory_bytes(pids: list[int]) -> int:
    """PSS: a page that several processes share counts once, whoever has it."""
    return sum(int(psutil.Process(pid).memory_full_info().pss) for pid in pids)


def peak_memory_bytes(pid: int) -> int:
    """The most resident memory that the process has used since its start."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not say how much memory process {pid} used at most")


def brokers(cluster: Loaded) -> list[int]:
    return [cluster.pids[node] for node in cluster.brokers]


def everything(cluster: Loaded) -> list[int]:
    return list(cluster.pids.values())


def forkers(cluster: Nodes) -> list[int]:
    """The process that forks the nodes, which is not one of them; none, where each is a child of this process."""
    parents = {psutil.Process(pid).ppid() for pid in everything(cluster)}
    return sorted(parents - {os.getpid()})


def _replicas(cluster: Loaded, topic: str, partition: int) -> list[list[Path]]:
    """The segment files of each replica."""
    directories = sorted(cluster.data.glob(f"broker-*/**/{topic}-{partition}"))
    return [sorted(directory.glob("*.log")) for directory in directories]


def wait_for_followers(cluster: Loaded, topic: str, partitions: int) -> None:
    """Until all replicas are of one length: the work of followers belongs to the cost of a load."""
    deadline = time.monotonic() + SETTLE_S
    for partition in range(partitions):
        while len({sum(file.stat().st_size for file in files) for files in _replicas(cluster, topic, partition)}) > 1:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the replicas of {topic}-{partition} differ after {SETTLE_S:g} s")
            time.sleep(0.005)


def batches(cluster: Loaded, topic: str, partitions: int) -> int:
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
