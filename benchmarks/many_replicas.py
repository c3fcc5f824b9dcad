"""Very many partitions on real brokers, of heirlog or of Apache Kafka, under the same client.

python -m benchmarks.many_replicas --jars DIR [--partitions N] [--only heirlog | apache-kafka]

Three brokers, and a replica of each partition on every one of them. What is measured: creating the partitions; CPU and
memory of all processes while nobody uses them; a broker that is killed, until the others lead its partitions; its
return after that, until it is in every ISR; a clean stop of a broker, and its return after that.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.apache_kafka import ApacheKafka
from benchmarks.gauges import MIB, Cost, Nodes, everything, forkers
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.local.ready import known_brokers
from heirlog.protocol.messages import CreateTopicsRequest, MetadataRequest, MetadataResponse

PARTITIONS = 10_000
PER_TOPIC = 100
TOPICS_PER_REQUEST = 10
TIMEOUT_S = 300.0
POLL_S = 0.05
IDLE_S = 10.0
SETTLED_CORES = 0.5
"""Apache Kafka's three nodes take a sixth of a core when they are idle."""


class Figures(NamedTuple):
    created_s: float
    """Until every broker knows a leader of each partition."""
    created_cpu_s: float
    idle_cores: float
    memory_mib: float
    killed_s: float
    """From the kill of a broker until another one knows leaders other than it, for all partitions."""
    killed_cpu_s: float
    returned_s: float
    """From its start until it is in the ISR of each partition."""
    returned_cpu_s: float
    stopped_s: float
    """Of a clean stop, until the process has ended."""
    started_s: float
    """From the start after it until it is in the ISR of each partition."""
    started_cpu_s: float


class Title(NamedTuple):
    field: str
    text: str
    unit: str


TITLES = (
    Title("created_s", "create, until each broker knows every leader", "s"),
    Title("created_cpu_s", "the same, CPU", "s"),
    Title("idle_cores", "CPU of all idle processes", "cores"),
    Title("memory_mib", "memory of all idle processes, RSS", "MiB"),
    Title("killed_s", "a broker killed, until all partitions have another leader", "s"),
    Title("killed_cpu_s", "the same, CPU", "s"),
    Title("returned_s", "its start after that, until it is in every ISR", "s"),
    Title("returned_cpu_s", "the same, CPU", "s"),
    Title("stopped_s", "a clean stop of a broker", "s"),
    Title("started_s", "its start after that, until it is in every ISR", "s"),
    Title("started_cpu_s", "the same, CPU", "s"),
)


class _Meter:
    """CPU of all processes, also of those that have ended meanwhile, as far as they were looked at."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def _now(self) -> dict[int, float]:
        pids = [*everything(self._nodes), *forkers(self._nodes)]
        return {pid: Cost.of([pid]).cpu_s for pid in pids}

    @contextmanager
    def spent(self) -> Iterator[Callable[[], tuple[float, float]]]:
        """Seconds, and seconds of CPU, from here to the call of what is given."""
        before, began = self._now(), time.monotonic()
        yield lambda: (
            time.monotonic() - began,
            sum(cpu_s - before.get(pid, 0.0) for pid, cpu_s in self._now().items()),
        )


def figures(nodes: Nodes, partitions: int) -> Figures:
    """Raises RuntimeError where something does not happen in time."""
    meter = _Meter(nodes)
    first = nodes.brokers[0]
    with meter.spent() as spent:
        topics = _create(nodes, partitions)
        for address in nodes.bootstrap_servers.split(","):
            _wait(address, topics, lambda partition: partition.leader_id >= 0)
        created_s, created_cpu_s = spent()
    _say(f"created after {created_s:.1f} s")
    _settle(nodes)
    with meter.spent() as spent:
        time.sleep(IDLE_S)
        idle_s, idle_cpu_s = spent()
    memory_bytes = Cost.of([*everything(nodes), *forkers(nodes)]).memory_bytes
    others = nodes.bootstrap_servers.split(",")[1]
    with meter.spent() as spent:
        nodes.kill(first)
        _wait(others, topics, lambda partition: partition.leader_id not in (-1, first))
        killed_s, killed_cpu_s = spent()
    _say(f"led again after {killed_s:.1f} s")
    returned_s, returned_cpu_s = _returns(nodes, meter, first, topics)
    _settle(nodes)
    with meter.spent() as spent:
        nodes.stop(first)
        stopped_s, _ = spent()
    _say(f"stopped after {stopped_s:.1f} s")
    started_s, started_cpu_s = _returns(nodes, meter, first, topics)
    return Figures(
        created_s,
        created_cpu_s,
        idle_cpu_s / idle_s,
        memory_bytes / MIB,
        killed_s,
        killed_cpu_s,
        returned_s,
        returned_cpu_s,
        stopped_s,
        started_s,
        started_cpu_s,
    )


def _returns(nodes: Nodes, meter: _Meter, broker: int, topics: list[str]) -> tuple[float, float]:
    with meter.spent() as spent:
        nodes.start(broker)
        addresses = nodes.bootstrap_servers.split(",")
        _until(lambda: set(nodes.brokers) <= known_brokers(addresses[0]), "the broker came back")
        _wait(addresses[1], topics, lambda partition: broker in partition.isr_nodes)
        seconds, cpu_s = spent()
    _say(f"in every ISR after {seconds:.1f} s")
    return seconds, cpu_s


def _say(sentence: str) -> None:
    """What has been measured so far: the whole takes minutes."""
    print(sentence, file=sys.stderr, flush=True)


def _create(nodes: Nodes, partitions: int) -> list[str]:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"many-{n}", num_partitions=PER_TOPIC, replication_factor=3)
        for n in range(partitions // PER_TOPIC)
    ]
    with Client(nodes.bootstrap_servers, timeout_s=TIMEOUT_S) as client:
        for at in range(0, len(topics), TOPICS_PER_REQUEST):
            request = CreateTopicsRequest(topics=topics[at : at + TOPICS_PER_REQUEST], timeout_ms=120_000)
            for topic in client.send_to_any(request).topics:
                if topic.error_code:
                    raise RuntimeError(f"{topic.name} was not created: {topic.error_message}")
    return [topic.name for topic in topics]


def _wait(
    address: str,
    topics: list[str],
    holds: Callable[[MetadataResponse.MetadataResponsePartition], bool],
) -> None:
    """One topic is asked for until it holds for its partitions, then the next one: asking about all of them again and
    again would keep the broker busy."""
    left = list(topics)
    with Client(address, timeout_s=TIMEOUT_S) as client:

        def all_hold() -> bool:
            while left:
                asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in left[-1:]]
                request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
                (found,) = client.send_to_any(request).topics
                if len(found.partitions) < PER_TOPIC or not all(map(holds, found.partitions)):
                    return False
                left.pop()
            return True

        _until(all_hold, f"{len(topics)} topics became as they should")


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {TIMEOUT_S:g} s: {what}")
        time.sleep(POLL_S)


def _settle(nodes: Nodes) -> None:
    """Until what there was to do has been done."""

    def is_idle() -> bool:
        before = Cost.of(everything(nodes)).cpu_s
        time.sleep(1.0)
        return Cost.of(everything(nodes)).cpu_s - before < SETTLED_CORES

    _until(is_idle, "the processes are idle")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.many_replicas", description=__doc__)
    parser.add_argument("--jars", type=Path, required=True, help="the directory of Apache Kafka's jars")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--only", choices=("heirlog", "apache-kafka"))
    options = parser.parse_args()
    found: list[Figures | None] = [None, None]
    if options.only != "apache-kafka":
        with Cluster(nodes=3, ledger=False) as ours:
            found[0] = figures(ours, options.partitions)
    if options.only != "heirlog":
        with ApacheKafka(options.jars) as theirs:
            found[1] = figures(theirs, options.partitions)
    print(f"| {options.partitions:,} partitions, RF 3 | heirlog | Apache Kafka | ratio |\n|---|---|---|---|")
    for field, text, unit in TITLES:
        values: list[float | None] = [None if each is None else getattr(each, field) for each in found]
        cells = ["" if value is None else f"{value:,.3g} {unit}" for value in values]
        of_heirlog, of_kafka = values
        ratio = "" if of_heirlog is None or of_kafka is None else f"{of_heirlog / of_kafka:.2f}"
        print(f"| {text} | {' | '.join(cells)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
