"""How near a node is to the least that Python and the system cost: the loads of `compare.py` on three brokers of
`bare_broker.py` and on three of heirlog, in turn.

python -m benchmarks.bounds [--rounds N]

The kernel's part is what a broker in any language pays for the same system calls. The share of a bare broker in what
Apache Kafka needs (`make bench-kafka`) is the least ratio that a row of that table can have.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import statistics
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks import load, page_cache
from benchmarks.bare_broker import HOST, BareBroker
from benchmarks.compare import FULL, READ, SHAPES, Shape
from benchmarks.gauges import Loaded
from heirlog.local.cluster import Cluster

Costs: TypeAlias = list[tuple[float, float]]
"""CPU, and the kernel's part of it."""
NODES = 3
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class BareBrokers:
    """Three processes; a topic is there once it is named."""

    bootstrap_servers: str
    data: Path
    pids: Mapping[int, int]

    @property
    def brokers(self) -> Sequence[int]:
        return list(self.pids)


@contextmanager
def bare_brokers(followers: int) -> Iterator[BareBrokers]:
    """followers: of each partition."""
    listeners = [socket.create_server((HOST, 0)) for _ in range(NODES)]
    with tempfile.TemporaryDirectory(prefix="bare-") as folder:
        data = Path(folder)
        pids = {node: _forked(BareBroker(node, listeners, data, followers).run) for node in range(NODES)}
        try:
            yield BareBrokers(f"{HOST}:{listeners[0].getsockname()[1]}", data, pids)
        finally:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            for listener in listeners:
                listener.close()


def _forked(run: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        try:
            run()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    return pid


def _produced(nodes: Loaded, topic: str, shape: Shape, times: int = 1) -> load.Throughput:
    page_cache.fill()
    return load.produce(
        nodes,
        topic,
        acks=shape.acks,
        records=FULL.records * (6 if shape.value_bytes < 1_000 else 1) * times,
        value_bytes=shape.value_bytes,
        batch_bytes=shape.batch_bytes,
    )


def _row(title: str, unit: str, ours: Costs, bare: Costs) -> None:
    cells = []
    for pairs in (bare, ours):
        whole, kernel = (statistics.median(values) for values in zip(*pairs, strict=True))
        cells.append(f"{whole:.3g} {unit}, {kernel:.3g}")
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def throughput(nodes: Cluster, bare: Mapping[int, BareBrokers], rounds: int) -> None:
    for number, shape in enumerate(SHAPES):
        ours: Costs = []
        least: Costs = []
        for turn in range(rounds):
            topic = f"bounds-{number}-{turn}"
            load.create(nodes, topic, shape.replication_factor)
            for cluster, found in ((nodes, ours), (bare[shape.replication_factor], least)):
                one = _produced(cluster, topic, shape)
                found.append((one.cpu_us_per_record, one.kernel_us_per_record))
        _row(shape.title, "CPU µs/record", ours, least)


def consume(nodes: Cluster, bare: BareBrokers, rounds: int) -> None:
    topic = "bounds-read"
    load.create(nodes, topic, 1)
    for cluster in (nodes, bare):
        _produced(cluster, topic, SHAPES[0], READ)
    load.meet_consumers(nodes, topic)
    ours: Costs = []
    least: Costs = []
    for _ in range(rounds):
        for cluster, found in ((nodes, ours), (bare, least)):
            one = load.consume(cluster, topic, records=FULL.records * READ, value_bytes=SHAPES[0].value_bytes)
            found.append((one.cpu_s_per_gb, one.kernel_s_per_gb))
    _row("consume, 1 KiB records", "CPU s/GB", ours, least)


def round_trips(nodes: Cluster, bare: Mapping[int, BareBrokers], rounds: int) -> None:
    for replication_factor, acks in ((1, "1"), (3, "all")):
        topic = f"bounds-trips-{replication_factor}"
        load.create(nodes, topic, replication_factor)
        runs = [
            [load.round_trips(cluster, topic, acks=acks) for cluster in (bare[replication_factor], nodes)]
            for _ in range(rounds)
        ]
        for name in ("p50", "p99"):
            least, ours = (statistics.median(getattr(run[side], f"{name}_us") for run in runs) for side in (0, 1))
            title = f"round trip at 250/s, acks={acks}, RF {replication_factor}, {name}"
            print(f"| {title} | {least:.0f} µs | {ours:.0f} µs |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with ExitStack() as held:
        # forked before a client has threads
        bare = {factor: held.enter_context(bare_brokers(factor - 1)) for factor in (1, NODES)}
        nodes = held.enter_context(Cluster(nodes=NODES, ledger=False))
        print("| work | a bare broker; of that, the kernel | heirlog; of that, the kernel |\n|---|---|---|")
        throughput(nodes, bare, options.rounds)
        consume(nodes, bare[1], options.rounds)
        round_trips(nodes, bare, options.rounds)


if __name__ == "__main__":
    main()
