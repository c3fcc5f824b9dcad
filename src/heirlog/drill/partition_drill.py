"""What the drills of one partition share: a topic of three replicas, a timeline, waiting, and the count at the end.

Any cluster with the interface `Nodes` can be used. librdkafka checks whether records survived (`workload.py`): a new
client must find each record acknowledged at acks=all at its offset with its value.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.drill.observe import DrillFailure, PartitionObserver, TimelineEntry, View
from heirlog.drill.progress import ClientProgress
from heirlog.drill.servers import Servers
from heirlog.drill.workload import Acknowledged, EndOffsetWatch, read_all
from heirlog.protocol.types import NO_LEADER

WAIT_S = 60.0
QUICK_STOPS = {"broker.heartbeat.interval.ms": 500}
"""For nodes that a drill stops: a clean stop waits until the other brokers have reported by heartbeat that they know.
"""


class Nodes(Protocol):
    """`heirlog.local.cluster.Cluster`, or other brokers with the same interface."""

    @property
    def bootstrap_servers(self) -> str: ...

    def start(self, node: int) -> None: ...

    def kill(self, node: int) -> None: ...

    def stop(self, node: int) -> None: ...


class PartitionDrill:
    """One drill on one topic. `timeline` grows with each `note`; say: called with each moment as it happens."""

    def __init__(
        self,
        nodes: Nodes,
        topic: str,
        say: Callable[[TimelineEntry], None] | None,
        progress: ClientProgress | None = None,
    ) -> None:
        self.nodes = nodes
        self.progress = progress
        self.topic = topic
        self.servers = Servers.of(nodes)
        self.client = self.servers.client()
        self.observer = PartitionObserver(self.client, topic)
        self.timeline: list[TimelineEntry] = []
        self.watch: EndOffsetWatch | None = None
        self._say = say
        self._started = time.monotonic()

    def close(self) -> None:
        self.client.close()

    def create_topic(self, replicas: Sequence[int], config: Mapping[str, str]) -> None:
        """One partition, led by the first replica."""
        admin = AdminClient(self.servers.librdkafka())
        topic = NewTopic(self.topic, num_partitions=1, replica_assignment=[list(replicas)], config=dict(config))
        for created in admin.create_topics([topic]).values():
            created.result(60)
        self.observer.wait("the new topic", lambda view: view.leader == replicas[0] and len(view.isr) == len(replicas))

    def note(self, event: str, condition: Callable[[View], bool]) -> View:
        """Wait until the partition has this state, and add it to the timeline. Raises DrillFailure."""
        view = self.observer.wait(event, condition)
        latest = self.watch.latest if self.watch is not None and view.leader != NO_LEADER else -1
        moment = TimelineEntry(
            at_ms=int(1000 * (time.monotonic() - self._started)), event=event, view=view, high_watermark=latest
        )
        self.timeline.append(moment)
        if self._say is not None:
            self._say(moment)
        return view

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S) -> None:
        """Raises DrillFailure."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise DrillFailure(f"waited {timeout_s:g} s for {what}; the partition: {self.observer.view()}")
            time.sleep(0.01)

    def stays_leaderless(self, why: str, for_s: float) -> None:
        """Record that there is no leader, and check that it stays so for `for_s` seconds. Raises DrillFailure."""
        self.note(why, lambda view: view.leader == NO_LEADER)
        deadline = time.monotonic() + for_s
        while time.monotonic() < deadline:
            view = self.observer.view()
            if view is not None and view.leader != NO_LEADER:
                raise DrillFailure(f"{why}: and yet broker {view.leader} was elected: {view}")
            time.sleep(0.05)

    def readable(self, acknowledged: Sequence[Acknowledged]) -> tuple[int, int]:
        """How many of these records a new client finds, and how many offsets changed their value while it read."""
        found = read_all(self.servers, self.topic)
        return sum(found.crc_by_offset.get(record.offset) == record.crc for record in acknowledged), found.changed


def write_acknowledged(path: Path, records: Sequence[Acknowledged]) -> None:
    """One JSON line per record: topic, partition, offset, crc (zlib.crc32 of the value)."""
    with path.open("w") as out:
        for record in records:
            line = {"topic": record.topic, "partition": record.partition, "offset": record.offset, "crc": record.crc}
            out.write(json.dumps(line) + "\n")
