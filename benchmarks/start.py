"""Starts of a cluster by a program that has started none before, and by the same program once more.

python -m benchmarks.start NODES [SECURITY]

The first start includes that of the process which forks the nodes (`heirlog.local.fork_server`), and its CPU. It does
not include that the program imports `heirlog.local.cluster`. SECURITY: what the listeners speak, such as SASL_SSL; the
first start of such a cluster makes an authority, certificates and users.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import NamedTuple

from benchmarks.gauges import Cost, everything, forkers
from heirlog.local.cluster import Cluster


class Start(NamedTuple):
    first_s: float
    """To all brokers in Metadata."""
    first_cpu_s: float
    """Of all nodes, and of the process that forks them."""
    further_s: float
    further_cpu_s: float


def measured(nodes: int, security: str = "PLAINTEXT") -> Start:
    """Of a program of its own."""
    command = [sys.executable, "-m", "benchmarks.start", str(nodes), security]
    return Start(*json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _here(nodes: int, security: str) -> Start:
    def once() -> tuple[float, float, float]:
        began = time.monotonic()
        with Cluster(nodes=nodes, security=security, ledger=False) as cluster:
            ready_s = time.monotonic() - began
            return ready_s, Cost.of(everything(cluster)).cpu_s, Cost.of(forkers(cluster)).cpu_s

    first_s, first_cpu_s, server_cpu_s = once()
    further_s, further_cpu_s, server_later_cpu_s = once()
    return Start(first_s, first_cpu_s + server_cpu_s, further_s, further_cpu_s + server_later_cpu_s - server_cpu_s)


if __name__ == "__main__":
    print(json.dumps(_here(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "PLAINTEXT")))
