"""Unclean recovery of many partitions at once: all brokers are killed, and come back.

With the last of them the controller asks three brokers about every partition and elects a leader for each. Told is the
time from there (the controller's own log) until a client sees a leader of every partition, what it took in requests and
records, and what the controller used.
"""

from __future__ import annotations

import datetime
import json
import resource
import time
from typing import Any, NamedTuple

from benchmarks.gauges import Cost, brokers, everything
from benchmarks.partitions import create, wait_until_idle
from heirlog.blocking import Client
from heirlog.local.cluster import Cluster
from heirlog.protocol.messages import MetadataRequest

PARTITIONS = 10_000
TIMEOUT_S = 300.0
POLL_S = 0.05
RECOVERY = "unclean-recovery"
UNFENCED = "broker-unfenced"
CONFIG = {"min.insync.replicas": "2", "broker.session.timeout.ms": 60_000}
"""Patient sessions: a machine that is busy making ten thousand logs fences nobody. A kill is seen by its connection."""
FILES = 65_536
"""Open ones of a broker: a log is one file."""
OTHER_FILES = 1_000


class Recovered(NamedTuple):
    partitions: int
    led_s: float
    """From the last needed broker unfenced to a leader of every partition in Metadata."""
    decided_s: float
    """The same, to the last election."""
    requests: int
    records: int
    batches: int
    controller_cpu_s: float


def recover(partitions: int) -> Recovered:
    """Raises RuntimeError if the cluster does not come back."""
    with Cluster(nodes=3, ledger=False, config=CONFIG) as nodes:
        topics = create(nodes, partitions)
        wait_until_idle(nodes)
        *first, last = nodes.brokers
        controllers = [pid for pid in everything(nodes) if pid not in brokers(nodes)]
        (controller,) = [node for node in nodes.node_ids if node not in nodes.brokers]
        for broker in nodes.brokers:
            nodes.kill(broker)
        for broker in first:
            nodes.start(broker)
        _wait_for_brokers(nodes, len(first))
        before = Cost.of(controllers).cpu_s
        nodes.start(last)
        _wait_until_led(nodes, topics)
        led_at = time.time()
        cpu_s = Cost.of(controllers).cpu_s - before
        events = _events(nodes.output(controller))
    elected = [event for event in events if event["event"] == RECOVERY and event["elected"]]
    if sum(event["elected"] for event in elected) < partitions:
        raise RuntimeError(f"only {sum(event['elected'] for event in elected)} of {partitions} were recovered")
    start = max(_seconds(event) for event in events if event["event"] == UNFENCED)
    return Recovered(
        partitions,
        led_at - start,
        _seconds(elected[-1]) - start,
        elected[-1]["requests"],
        sum(event["elected"] for event in elected),
        len(elected),
        cpu_s,
    )


def _wait_for_brokers(nodes: Cluster, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with Client(nodes.bootstrap_servers, timeout_s=TIMEOUT_S) as client:
            if len(client.send_to_any(MetadataRequest(topics=[])).brokers) >= count:
                return
        time.sleep(POLL_S)
    raise RuntimeError(f"{count} brokers did not come back")


def _wait_until_led(nodes: Cluster, unled: list[str]) -> None:
    """One topic is looked at until it is led, and then the others: who asks about all of them again and again keeps a
    broker busy with that."""
    deadline = time.monotonic() + TIMEOUT_S
    with Client(nodes.bootstrap_servers, timeout_s=TIMEOUT_S) as client:
        while unled:
            if time.monotonic() > deadline:
                raise RuntimeError(f"partitions of {len(unled)} topics stayed without a leader")
            if _unled(client, unled[:1]):
                time.sleep(POLL_S)
            else:
                unled = _unled(client, unled[1:])


def _unled(client: Client, names: list[str]) -> list[str]:
    if not names:
        return []
    asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    topics = client.send_to_any(MetadataRequest(topics=asked, allow_auto_topic_creation=False)).topics
    led = {
        topic.name
        for topic in topics
        if topic.partitions and all(partition.leader_id >= 0 for partition in topic.partitions)
    }
    return [name for name in names if name not in led]


def _events(output: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] in (RECOVERY, UNFENCED)]


def _files_allowed() -> int:
    """Raises the limit of this process and those it starts, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, max(FILES, hard)))
        except (OSError, ValueError):
            return soft
    return FILES


def _seconds(event: dict[str, Any]) -> float:
    return datetime.datetime.fromisoformat(event["timestamp"]).timestamp()


def report(scale: float) -> None:
    """One row; `scale` below 1: a tenth of the partitions. Fewer too where the system allows too few open files."""
    found = recover(min(PARTITIONS if scale >= 1 else PARTITIONS // 10, _files_allowed() - OTHER_FILES))
    print(
        "\n| partitions recovered at once | all led after | all decided after | requests | records | in batches |",
        end="",
    )
    print(" CPU of the controller |\n|---|---|---|---|---|---|---|")
    print(
        f"| {found.partitions:,} | {found.led_s:.2f} s | {found.decided_s:.2f} s | {found.requests} "
        f"| {found.records:,} | {found.batches} | {found.controller_cpu_s:.2f} s |",
        flush=True,
    )


if __name__ == "__main__":
    report(1.0)
