"""`make bench-kafka`: Apache Kafka and heirlog on the same machine, in one run, under the same client.

python -m benchmarks.compare --jars DIR [--rounds N] [--quick]
    [--controllers-only | --transactions-only | --groups-only | --encrypted-only]

Both clusters are up at the same time and take turns, so that whatever else the machine does meets both. Each figure is
a median of the rounds. Apache Kafka is measured warm: it has produced for a minute before the first round (its compiler
gets faster for longer than that, so the cold figure is shown beside it once). CPU is that of all node processes, the
controller of heirlog included; for Apache Kafka every node is both. The loss of the active controller and the metadata
of many partitions are measured afterwards, on clusters of their own.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import encrypted as tls
from benchmarks import fail_over, groups, interruption, load, metadata, page_cache, start, transactions
from benchmarks.apache_kafka import JVM, ApacheKafka, ApacheKafkaApart
from benchmarks.gauges import MIB, Cost, Nodes, everything, forkers, shared_memory_bytes
from heirlog.local.cluster import Cluster

SETTLE_S = 5.0
READ = 4
"""Times as many records are read as written in one run: reading costs so little that less is hard to measure."""


class Scale(NamedTuple):
    rounds: int
    records: int
    """Of one run with records of 1 KiB; six times as many of 100 B."""
    warm_up_s: float
    idle_s: float
    trips_s: float
    transactions_s: float
    heartbeats_s: float
    partitions: int
    """Of the controllers."""


FULL = Scale(
    rounds=5,
    records=150_000,
    warm_up_s=60.0,
    idle_s=20.0,
    trips_s=4.0,
    transactions_s=10.0,
    heartbeats_s=5.0,
    partitions=metadata.PARTITIONS,
)
QUICK = Scale(
    rounds=1,
    records=60_000,
    warm_up_s=15.0,
    idle_s=5.0,
    trips_s=2.0,
    transactions_s=3.0,
    heartbeats_s=2.0,
    partitions=metadata.PARTITIONS // 10,
)


class Shape(NamedTuple):
    title: str
    replication_factor: int
    acks: str
    value_bytes: int
    batch_bytes: int
    cpu_goal: float
    """At most this share of Apache Kafka's when warm."""
    rate_goal: float | None = None
    """At least this multiple of Apache Kafka's records/s."""


SHAPES = (
    Shape("RF 3, acks=all, 1 KiB records, 64 KiB batches", 3, "all", 1_024, 65_536, 0.25, 3.0),
    Shape("RF 3, acks=all, 1 KiB records, 16 KiB batches", 3, "all", 1_024, 16_384, 0.33, 2.5),
    Shape("RF 3, acks=all, 1 KiB records, 1 MB batches", 3, "all", 1_024, 1_000_000, 1 / 2),
    Shape("RF 3, acks=all, 100 B records, 64 KiB batches", 3, "all", 100, 65_536, 0.4),
    Shape("RF 1, acks=1, 1 KiB records, 64 KiB batches", 1, "1", 1_024, 65_536, 1 / 2),
)


def titles() -> None:
    print("\n| work | heirlog | Apache Kafka | ratio | goal | |\n|---|---|---|---|---|---|", flush=True)


def row(title: str, unit: str, ours: float, theirs: float, *, most: float | None = None, least: float = 0.0) -> None:
    """One line: both figures, ours divided by theirs, and what the ratio has to be at most or at least."""
    ratio = ours / theirs if theirs else float("nan")
    goal, reached = (f"≤ {most:.2f}", ratio <= most) if most is not None else (f"≥ {least:g}", ratio >= least)
    figures = f"{_number(ours)} {unit} | {_number(theirs)} {unit} | {ratio:.2f}"
    print(f"| {title} | {figures} | {goal} | {'reached' if reached else 'missed'} |", flush=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Pair(NamedTuple):
    """One figure of each."""

    ours: float
    theirs: float


def medians(pairs: Iterable[Pair]) -> Pair:
    ours, theirs = zip(*pairs, strict=True)
    return Pair(statistics.median(ours), statistics.median(theirs))


class Comparison:
    """Both clusters, up."""

    def __init__(self, ours: Cluster, theirs: ApacheKafka, scale: Scale) -> None:
        self._both: tuple[Nodes, Nodes] = (ours, theirs)
        self._scale = scale
        self._topics = 0

    def _each(self, measure: Callable[[Nodes], float]) -> Pair:
        return Pair(*map(measure, self._both))

    def _memory(self) -> Pair:
        return self._each(lambda nodes: Cost.of(everything(nodes)).memory_bytes / MIB / len(nodes.pids))

    def idle(self) -> None:
        time.sleep(SETTLE_S)
        before = self._each(lambda nodes: Cost.of(everything(nodes)).cpu_s)
        time.sleep(self._scale.idle_s)
        after = self._each(lambda nodes: Cost.of(everything(nodes)).cpu_s)
        row("memory idle, per process", "MiB", *self._memory(), most=1 / 10)
        processes = [[*everything(nodes), *forkers(nodes)] for nodes in self._both]
        row(
            "memory of all idle processes, RSS",
            "MiB",
            *(Cost.of(pids).memory_bytes / MIB for pids in processes),
            most=0.08,
        )
        row(
            "memory of all idle processes, PSS",
            "MiB",
            *(shared_memory_bytes(pids) / MIB for pids in processes),
            most=0.08,
        )
        cores = [(b - a) / self._scale.idle_s for a, b in zip(before, after, strict=True)]
        row("CPU of all idle nodes", "cores", *cores, most=0.03 / 0.11)

    def _produce(self, nodes: Nodes, shape: Shape, times: int = 1) -> load.Throughput:
        page_cache.fill()
        return self._load(nodes, shape, times)

    def _load(self, nodes: Nodes, shape: Shape, times: int = 1) -> load.Throughput:
        self._topics += 1
        topic = f"compare-{self._topics}"
        load.create(nodes, topic, shape.replication_factor)
        return load.produce(
            nodes,
            topic,
            acks=shape.acks,
            records=self._scale.records * (6 if shape.value_bytes < 1_000 else 1) * times,
            value_bytes=shape.value_bytes,
            batch_bytes=shape.batch_bytes,
        )

    def cold(self) -> None:
        """The first two loads that either sees."""
        for shape in (SHAPES[-1], SHAPES[0]):
            ours, theirs = (self._produce(nodes, shape) for nodes in self._both)
            row(f"cold: {shape.title}", "CPU µs/record", ours.cpu_us_per_record, theirs.cpu_us_per_record, most=1 / 3)

    def warm_up(self) -> None:
        """The compiler of a JVM needs the work that it is to get fast at."""
        until = time.monotonic() + self._scale.warm_up_s
        while time.monotonic() < until:
            for shape in SHAPES:
                self._load(self._both[1], shape)
        # the gigabytes that this has left in the page cache would go to the disk during the first rounds
        os.sync()

    def throughput(self) -> None:
        for shape in SHAPES:
            runs = [[self._produce(nodes, shape) for nodes in self._both] for _ in range(self._scale.rounds)]
            cost = medians(Pair(ours.cpu_us_per_record, theirs.cpu_us_per_record) for ours, theirs in runs)
            rate = medians(Pair(ours.records_per_s, theirs.records_per_s) for ours, theirs in runs)
            row(shape.title, "CPU µs/record", *cost, most=shape.cpu_goal)
            if shape.rate_goal is not None:
                row(shape.title, "records/s", *rate, least=shape.rate_goal)

    def consume(self) -> None:
        topics = []
        for nodes in self._both:
            self._produce(nodes, SHAPES[0], READ)
            topics.append(f"compare-{self._topics}")
            load.meet_consumers(nodes, topics[-1])

        def once(nodes: Nodes, topic: str) -> float:
            return load.consume(nodes, topic, records=self._scale.records * READ, value_bytes=1_024).cpu_s_per_gb

        rounds = range(self._scale.rounds)
        costs = [Pair(*(once(nodes, topic) for nodes, topic in zip(self._both, topics, strict=True))) for _ in rounds]
        row("consume, 1 KiB records", "CPU s/GB", *medians(costs), most=0.15)

    def round_trips(self) -> None:
        for replication_factor, acks in ((1, "1"), (3, "all")):
            topic = f"trips-{acks}"
            for nodes in self._both:
                load.create(nodes, topic, replication_factor)
            title = f"round trip at 250/s, acks={acks}, RF {replication_factor}"
            self._trips(title, partial(load.round_trips, topic=topic, acks=acks), slices=4)

        def alone(nodes: Nodes, *, seconds: float) -> load.RoundTrips:
            with stopped(self._both[nodes is self._both[0]]):
                return load.round_trips(nodes, "trips-all", acks="all", seconds=seconds)

        self._trips("the same, while the other's processes are stopped", alone, slices=1)

    def _trips(self, title: str, measure: Callable[..., load.RoundTrips], *, slices: int) -> None:
        """slices: of each round, in turns. A machine that is slow for some seconds is then slow for both."""
        seconds = self._scale.trips_s / slices
        trips = [[measure(nodes, seconds=seconds) for nodes in self._both] for _ in range(self._scale.rounds * slices)]
        row(f"{title}, p50", "µs", *medians(Pair(a.p50_us, b.p50_us) for a, b in trips), most=0.6)
        row(f"{title}, p99", "µs", *medians(Pair(a.p99_us, b.p99_us) for a, b in trips), most=0.3)

    def transactions(self) -> None:
        for nodes in self._both:
            load.create(nodes, "transactions", 3)
            for producers in transactions.PRODUCERS:  # a JVM gets fast at them, too
                transactions.measure(nodes, "transactions", producers=producers, seconds=self._scale.transactions_s)
        for producers in transactions.PRODUCERS:
            runs = [
                [
                    transactions.measure(nodes, "transactions", producers=producers, seconds=self._scale.transactions_s)
                    for nodes in self._both
                ]
                for _ in range(self._scale.rounds)
            ]
            title = f"transactions of {producers} producer{'s' if producers > 1 else ''}"
            row(title, "per s", *medians(Pair(a.per_s, b.per_s) for a, b in runs), least=1.0)
            row(
                f"{title}, commit p50",
                "ms",
                *medians(Pair(a.commit_p50_ms, b.commit_p50_ms) for a, b in runs),
                most=1.0,
            )
            row(f"{title}, CPU of each", "ms", *medians(Pair(a.cpu_ms, b.cpu_ms) for a, b in runs), most=1 / 2)

    def groups(self) -> None:
        """A JVM gets fast at them, too: the first round of each does not count."""
        for nodes in self._both:
            groups.create(nodes)
        seconds, rounds = self._scale.heartbeats_s, range(self._scale.rounds + 1)
        costs = [self._each(lambda nodes: groups.heartbeat_us(nodes, seconds)[0]) for _ in rounds]
        row("heartbeat of KIP-848 that changes nothing, CPU", "µs", *medians(costs[1:]), most=1 / 3)
        for members in groups.SIZES:
            waits = [self._each(lambda nodes, n=members: 1e3 * groups.rebalance_s(nodes, n)) for _ in rounds]  # type: ignore[misc]
            row(f"rebalance from {members} to {members + 1} members", "ms", *medians(waits[1:]), most=1.0)

    def memory_after_load(self) -> None:
        row("memory after load, per process", "MiB", *self._memory(), most=1 / 10)

    def leader_killed(self) -> None:
        for nodes in self._both:
            load.create(nodes, "moved", 3)

        def once(nodes: Nodes) -> float:
            return interruption.patient_s(nodes, "moved")

        waits = [self._each(once) for _ in range(min(self._scale.rounds, 3))]
        row("leader killed to the first new acknowledgement", "s", *medians(waits), most=0.07)


@contextmanager
def stopped(nodes: Nodes) -> Iterator[None]:
    """They do nothing at all, not even the work of idle processes."""
    pids = everything(nodes)
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        # sessions and voters that were late are looked after first
        time.sleep(SETTLE_S)


def controllers_lost(jars: Path, rounds: int) -> None:
    """Both clusters are up, and take turns."""
    with ExitStack() as held:
        ours = held.enter_context(Cluster(nodes=3, controllers=3, ledger=False))
        theirs = held.enter_context(ApacheKafkaApart(jars, 3))
        for lost, measure in fail_over.LOSSES:
            waits = [(measure(ours), measure(theirs)) for _ in range(rounds)]
            our_waits, their_waits = (fail_over.Waits.of(seconds) for seconds in zip(*waits, strict=True))
            title = f"active controller {lost} to the next accepted CreateTopics"
            row(f"{title}, median", "s", our_waits.median, their_waits.median, most=1.0)
            row(f"{title}, longest", "s", our_waits.longest, their_waits.longest, most=1.0)


def many_partitions(jars: Path, partitions: int) -> None:
    """One after the other: each of them needs the whole machine."""
    ours, theirs = metadata.of_heirlog(partitions), metadata.of_apache_kafka(jars, partitions)
    for title in metadata.TITLES:
        text = f"metadata of {partitions:,} partitions: {title.text}"
        if title.most is None:
            print(f"| {text} | {metadata.cell(title, ours)} | {metadata.cell(title, theirs)} | | | |", flush=True)
        else:
            row(text, title.unit, getattr(ours, title.field), getattr(theirs, title.field), most=title.most)


def brokers_and_clients(jars: Path, scale: Scale) -> None:
    with ExitStack() as held:
        # first: a JVM goes on compiling after its start
        starts = [start.measured(nodes=3) for _ in range(scale.rounds)]
        ours = held.enter_context(Cluster(nodes=3, ledger=False))
        theirs = held.enter_context(ApacheKafka(jars))
        their_s, their_cpu_s = theirs.started_s, Cost.of(everything(theirs)).cpu_s
        first_s, first_cpu_s, further_s, further_cpu_s = map(statistics.median, zip(*starts, strict=True))
        for title, our_s, our_cpu_s in (
            ("first start of a program", first_s, first_cpu_s),
            ("further start", further_s, further_cpu_s),
        ):
            row(f"{title}, to three brokers in Metadata", "s", our_s, their_s, most=1 / 10)
            row(f"{title}, CPU of all processes", "s", our_cpu_s, their_cpu_s, most=1 / 10)
        both = Comparison(ours, theirs, scale)
        both.idle()
        both.cold()
        both.warm_up()
        both.throughput()
        both.consume()
        both.round_trips()
        both.transactions()
        both.groups()
        both.memory_after_load()
        both.leader_killed()


def encrypted(jars: Path, scale: Scale) -> None:
    for work, protocol, runs in tls.measure(jars, JVM, scale.records, scale.rounds, 1 if scale is QUICK else 3):
        title = f"{work}, one broker, 1 KiB records, {protocol}"
        row(title, "CPU s/GB", *medians(Pair(*run) for run in runs), most=1 / 2 if protocol == "PLAINTEXT" else 1.0)


def only_transactions(jars: Path, scale: Scale) -> None:
    with Cluster(nodes=3, ledger=False) as ours, ApacheKafka(jars) as theirs:
        Comparison(ours, theirs, scale).transactions()


def only_groups(jars: Path, scale: Scale) -> None:
    with Cluster(nodes=3, ledger=False) as ours, ApacheKafka(jars) as theirs:
        Comparison(ours, theirs, scale).groups()


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench-kafka", description=__doc__)
    parser.add_argument("--jars", type=Path, required=True, help="the directory of Apache Kafka's jars")
    parser.add_argument("--rounds", type=int, help=f"{FULL.rounds} unless --quick is given")
    parser.add_argument("--quick", action="store_true", help="one round of fewer records, in three minutes")
    parser.add_argument("--controllers-only", action="store_true", help="only the fail-over and the metadata rows")
    parser.add_argument("--encrypted-only", action="store_true", help="only the rows with and without TLS")
    parser.add_argument("--transactions-only", action="store_true", help="only the rows of transactions")
    parser.add_argument("--groups-only", action="store_true", help="only the rows of groups of the consumer protocol")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    scale = scale._replace(rounds=options.rounds or scale.rounds)
    cores = f"{os.cpu_count()} cores shared by nodes and client"
    print(f"{platform.platform()}, Python {platform.python_version()}, {cores}, medians of {scale.rounds}")
    print(f"Load average before: {os.getloadavg()[0]:.1f}")
    titles()
    if options.transactions_only:
        only_transactions(options.jars, scale)
        return
    if options.groups_only:
        only_groups(options.jars, scale)
        return
    if options.encrypted_only:
        encrypted(options.jars, scale)
        return
    if not options.controllers_only:
        brokers_and_clients(options.jars, scale)
        encrypted(options.jars, scale)
    controllers_lost(options.jars, 1 if options.quick else max(scale.rounds, fail_over.ROUNDS))
    many_partitions(options.jars, scale.partitions)
    print(f"\nLoad average after: {os.getloadavg()[0]:.1f} (the comparison itself makes 2 to 4).")


if __name__ == "__main__":
    main()
