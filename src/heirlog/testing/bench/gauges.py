"""What a cluster's processes cost: resident memory and CPU time, as the operating system counts them."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from heirlog.testing.cluster import Cluster

MIB = 1 << 20


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
