"""`make bench`: start, idle cost, throughput, round trips, transactions, interruptions, controllers, partitions,
recovery, simulator, Spark.

python -m benchmarks [--rounds N] [--quick]
    [--controllers-only | --partitions-only | --recovery-only | --transactions-only | --groups-only |
     --simulator-only | --spark-only | --spark-large-only | --audit-only]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks import (
    audit,
    fail_over,
    groups,
    interruption,
    load,
    metadata,
    page_cache,
    partitions,
    recovery,
    simulator,
    spark,
    spark_large,
    transactions,
)
from benchmarks import start as starts
from benchmarks.gauges import MIB, Cost, brokers, everything, forkers, shared_memory_bytes
from heirlog.local.cluster import Cluster


class Shape(NamedTuple):
    replication_factor: int
    acks: str
    value_bytes: int
    batch_bytes: int
    records: int
    """Of one run."""

    def __str__(self) -> str:
        batch = f"{self.batch_bytes // 1024} KiB" if self.batch_bytes < 1_000_000 else "1 MB"
        return f"RF {self.replication_factor}, acks={self.acks}, {self.value_bytes} B records, {batch} batches"


SHAPES = (
    Shape(1, "1", 1_024, 65_536, 200_000),
    Shape(3, "all", 1_024, 16_384, 150_000),
    Shape(3, "all", 1_024, 65_536, 150_000),
    Shape(3, "all", 1_024, 1_000_000, 150_000),
    Shape(3, "all", 100, 65_536, 600_000),
)


def cluster() -> Cluster:
    """Nodes as `heirlog up` runs them: what they flushed is kept in no ledger."""
    return Cluster(nodes=3, ledger=False)


def median(rounds: int, measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(rounds))


def table(*titles: str) -> None:
    print(f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}")


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def start(rounds: int) -> None:
    for nodes, security in ((1, "PLAINTEXT"), (3, "PLAINTEXT"), (3, "SASL_SSL")):
        runs = [starts.measured(nodes, security) for _ in range(rounds)]
        first_s, first_cpu_s, further_s, further_cpu_s = map(statistics.median, zip(*runs, strict=True))
        closed = "" if security == "PLAINTEXT" else f" behind {security}"
        what = f"{nodes} broker{'s' if nodes > 1 else ''} and a controller{closed}"
        row(f"start of {what}, the first of a program: ready", f"{first_s:.2f} s")
        row("the same: CPU of all nodes and of the process that forks them", f"{first_cpu_s:.2f} s")
        row(f"start of {what}, a further one: ready", f"{further_s:.2f} s")
        row("the same: CPU", f"{further_cpu_s:.2f} s")


def idle(seconds: float) -> None:
    with cluster() as nodes:
        time.sleep(2.0)
        before = Cost.of(everything(nodes))
        time.sleep(seconds)
        after = Cost.of(everything(nodes))
        row("idle: memory of a broker", f"{Cost.of(brokers(nodes)).memory_bytes / MIB / len(nodes.brokers):.0f} MiB")
        processes = [*everything(nodes), *forkers(nodes)]
        row(
            "idle: memory of all, with the process that forks them, RSS",
            f"{Cost.of(processes).memory_bytes / MIB:.0f} MiB",
        )
        row("the same, PSS", f"{shared_memory_bytes(processes) / MIB:.0f} MiB")
        row("idle: CPU of all four", f"{(after.cpu_s - before.cpu_s) / seconds:.3f} cores")


def throughput(rounds: int, scale: float) -> None:
    table("produce", "records/s", "MB/s", "CPU µs/record", "CPU µs/batch", "CPU s/GB")
    with cluster() as nodes:
        for number, shape in enumerate(SHAPES):
            row(str(shape), *_produce(nodes, number, shape, rounds, scale))
        records = int(SHAPES[0].records * scale)
        load.meet_consumers(nodes, "produce-0-0")
        read = load.consume(nodes, "produce-0-0", records=records, value_bytes=SHAPES[0].value_bytes)
        table("consume", "records/s", "MB/s", "CPU µs/record", "CPU s/GB")
        figures = f"{read.records_per_s:,.0f}", f"{read.mb_per_s:.0f}", f"{read.cpu_us_per_record:.2f}"
        row(f"{SHAPES[0].value_bytes} B records", *figures, f"{read.cpu_s_per_gb:.2f}")
        memory = Cost.of(brokers(nodes)).memory_bytes / MIB / len(nodes.brokers)
        print(f"\nMemory of a broker after that: {memory:.0f} MiB.")


def _produce(nodes: Cluster, number: int, shape: Shape, rounds: int, scale: float) -> list[str]:
    runs = []
    for index in range(rounds):
        topic = f"produce-{number}-{index}"
        load.create(nodes, topic, shape.replication_factor)
        page_cache.fill()
        runs.append(
            load.produce(
                nodes,
                topic,
                acks=shape.acks,
                records=int(shape.records * scale),
                value_bytes=shape.value_bytes,
                batch_bytes=shape.batch_bytes,
            )
        )
    middle = sorted(runs, key=lambda run: run.broker_cpu_s)[len(runs) // 2]
    return [
        f"{middle.records_per_s:,.0f}",
        f"{middle.mb_per_s:.0f}",
        f"{middle.cpu_us_per_record:.2f}",
        f"{middle.cpu_us_per_batch:,.0f}",
        f"{middle.cpu_s_per_gb:.2f}",
    ]


def latency(rounds: int) -> None:
    table("round trip at 250/s", "p50 µs", "p99 µs")
    with cluster() as nodes:
        for replication_factor, acks in ((1, "1"), (3, "all")):
            topic = f"trip-{replication_factor}"
            load.create(nodes, topic, replication_factor)
            trips = [load.round_trips(nodes, topic, acks=acks) for _ in range(rounds)]
            p50 = statistics.median(trip.p50_us for trip in trips)
            p99 = statistics.median(trip.p99_us for trip in trips)
            row(f"RF {replication_factor}, acks={acks}", f"{p50:.0f}", f"{p99:.0f}")


def transactional(rounds: int, scale: float) -> None:
    table("transactions of ten records", "per s", "commit p50", "CPU of each")
    transactions.report(rounds, 10.0 * scale, row)


def members(rounds: int, scale: float) -> None:
    table("groups of the consumer protocol", "cost")
    groups.report(rounds, 1.0 if scale < 1 else 5.0, row)


def interruptions(rounds: int) -> None:
    table("acks=all, RF 3, is interrupted for", "seconds")
    with cluster() as nodes:
        load.create(nodes, "moved", 3)
        for title, measure in (
            ("leader killed, librdkafka with its defaults", interruption.patient_s),
            ("leader killed, a client that asks every 20 ms", interruption.after_a_kill_s),
            ("leader stopped cleanly, the same client", interruption.after_a_clean_stop_s),
        ):
            row(title, f"{statistics.median(measure(nodes, 'moved') for _ in range(rounds)):.2f}")


def controllers(rounds: int, scale: float) -> None:
    fail_over.report(rounds)
    metadata.report(scale)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round and a tenth of the records: does it run?")
    parser.add_argument("--controllers-only", action="store_true", help="three controllers: fail-over, many partitions")
    parser.add_argument("--partitions-only", action="store_true", help="what a hundred to a hundred thousand cost")
    parser.add_argument("--recovery-only", action="store_true", help="ten thousand leaderless partitions at once")
    parser.add_argument("--transactions-only", action="store_true", help="transactions of librdkafka producers")
    parser.add_argument("--groups-only", action="store_true", help="heartbeats and rebalances of KIP-848")
    parser.add_argument("--simulator-only", action="store_true", help="seeds per minute, and where the time goes")
    parser.add_argument("--spark-only", action="store_true", help="our Spark source and sink next to Spark's connector")
    parser.add_argument("--spark-large-only", action="store_true", help="a topic of 5 GB: memory of Spark's workers")
    parser.add_argument("--audit-only", action="store_true", help="heirlog audit next to kafka-dump-log")
    options = parser.parse_args()
    rounds, scale = (1, 0.1) if options.quick else (options.rounds, 1.0)
    cores = f"{os.cpu_count()} cores shared by brokers and client"
    print(f"{platform.platform()}, Python {platform.python_version()}, {cores}, medians of {rounds}")
    controller_rounds = 1 if options.quick else max(rounds, fail_over.ROUNDS)
    if options.controllers_only:
        controllers(controller_rounds, scale)
        return
    if options.partitions_only:
        partitions.report(scale)
        return
    if options.recovery_only:
        recovery.report(scale)
        return
    if options.transactions_only:
        transactional(rounds, scale)
        return
    if options.groups_only:
        members(rounds, scale)
        return
    if options.simulator_only:
        simulator.report(scale)
        return
    if options.spark_only:
        spark.report(rounds, scale)
        return
    if options.spark_large_only:
        spark_large.report(scale)
        return
    if options.audit_only:
        audit.report(rounds, scale)
        return
    table("process", "cost")
    start(rounds)
    idle(2.0 if options.quick else 10.0)
    throughput(rounds, scale)
    latency(rounds)
    transactional(rounds, scale)
    members(rounds, scale)
    interruptions(rounds)
    controllers(controller_rounds, scale)
    partitions.report(scale)
    recovery.report(scale)
    simulator.report(scale)
    spark.report(rounds, scale)
    audit.report(rounds, scale)


if __name__ == "__main__":
    main()
