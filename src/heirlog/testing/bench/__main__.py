"""`make bench`: start, idle cost, throughput, round trips, failover; printed as Markdown tables.

python -m heirlog.testing.bench [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

from heirlog.testing.bench import load
from heirlog.testing.bench.gauges import MIB, Cost, brokers, everything
from heirlog.testing.cluster import Cluster

SHAPES = ((100, 600_000), (1_024, 150_000))
"""(value bytes, records of one run)"""


def median(rounds: int, measure: Callable[[int], float]) -> float:
    return statistics.median(measure(index) for index in range(rounds))


def start(rounds: int) -> None:
    def once(_: int) -> float:
        began = time.monotonic()
        with Cluster(nodes=3):
            return time.monotonic() - began

    print(
        f"\n| start of 3 brokers and 1 controller to 3 brokers in Metadata | {median(rounds, once):.2f} s |\n|---|---|"
    )


def idle(seconds: float) -> None:
    with Cluster(nodes=3) as cluster:
        time.sleep(2.0)
        before = Cost.of(everything(cluster))
        time.sleep(seconds)
        after = Cost.of(everything(cluster))
        memory = Cost.of(brokers(cluster)).memory_bytes / MIB / len(cluster.brokers)
        cores = (after.cpu_s - before.cpu_s) / seconds
        print(f"| memory of an idle broker | {memory:.0f} MiB |")
        print(f"| CPU of all four idle processes | {cores:.3f} cores |")


def throughput(rounds: int, scale: float) -> None:
    print("\n| load | records/s | MB/s | broker CPU µs/record | broker CPU µs/batch sent |\n|---|---|---|---|---|")
    with Cluster(nodes=3) as cluster:
        for replication_factor, acks in ((1, "1"), (3, "1"), (3, "all")):
            for value_bytes, records in SHAPES:
                runs = []
                for index in range(rounds):
                    topic = f"produce-{replication_factor}-{acks}-{value_bytes}-{index}"
                    load.create(cluster, topic, replication_factor)
                    runs.append(
                        load.produce(cluster, topic, acks=acks, records=int(records * scale), value_bytes=value_bytes)
                    )
                middle = sorted(runs, key=lambda run: run.records_per_s)[len(runs) // 2]
                print(
                    f"| produce RF {replication_factor} acks={acks} {value_bytes} B | {middle.records_per_s:,.0f} "
                    f"| {middle.mb_per_s:.0f} | {middle.cpu_us_per_record:.2f} | {middle.cpu_us_per_batch:.0f} |"
                )
        read = load.consume(
            cluster, "produce-3-all-1024-0", records=int(SHAPES[1][1] * scale), value_bytes=SHAPES[1][0]
        )
        print(
            f"| consume 1024 B | {read.records_per_s:,.0f} | {read.mb_per_s:.0f} "
            f"| {read.cpu_us_per_record:.2f} | ({read.cpu_s_per_gb:.2f} CPU s/GB) |"
        )


def latency(rounds: int) -> None:
    print("\n| round trip at 250/s | p50 µs | p99 µs |\n|---|---|---|")
    with Cluster(nodes=3) as cluster:
        for replication_factor, acks in ((1, "1"), (3, "all")):
            topic = f"trip-{replication_factor}"
            load.create(cluster, topic, replication_factor)
            trips = [load.round_trips(cluster, topic, acks=acks) for _ in range(rounds)]
            p50 = statistics.median(trip.p50_us for trip in trips)
            p99 = statistics.median(trip.p99_us for trip in trips)
            print(f"| RF {replication_factor} acks={acks} | {p50:.0f} | {p99:.0f} |")


def failover(rounds: int) -> None:
    with Cluster(nodes=3) as cluster:
        load.create(cluster, "failover", 3)
        seconds = median(rounds, lambda _: load.failover_s(cluster, "failover"))
        print(f"\n| leader killed to first new acknowledgement | {seconds:.2f} s |\n|---|---|")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round and a tenth of the records: does it run?")
    options = parser.parse_args()
    rounds, scale = (1, 0.1) if options.quick else (options.rounds, 1.0)
    print(f"{platform.platform()}, Python {platform.python_version()}, medians of {rounds}")
    start(rounds)
    idle(2.0 if options.quick else 10.0)
    throughput(rounds, scale)
    latency(rounds)
    failover(rounds)


if __name__ == "__main__":
    main()
