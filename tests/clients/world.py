"""What tests on the wire know of the cluster before them, learned through kio alone."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clients.wire_client import WireClient
from patience import eventually

from heirlog.testing.cluster import Cluster

CONTROLLER_ID = 100
UNTOUCHED = {
    "auto.create.topics.enable": False,
    # the cluster lives for minutes: neither retention, to which records of 2023 are old, nor a preferred leader that
    # is elected by itself may come between two requests of a test
    "log.retention.check.interval.ms": 3_600_000,
    "auto.leader.rebalance.enable": False,
    # a clean stop waits until the others' heartbeats say that they know
    "broker.heartbeat.interval.ms": 500,
    # who is killed is known by its connection, and who is only slow on a busy machine stays
    "broker.session.timeout.ms": 60_000,
    "heirlog.broker.disconnect.grace.ms": 200,
}
WAIT_S = 60.0


@dataclass
class World:
    cluster: Cluster
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def broker(self, broker_id: int | None = None) -> WireClient:
        """A new connection to that broker, or to the first that runs."""
        addresses = self.cluster.bootstrap_servers.split(",")
        running = sorted(set(self.cluster.pids) & set(self.cluster.brokers))
        chosen = running[0] if broker_id is None else broker_id
        host, _, port = addresses[self.cluster.brokers.index(chosen)].partition(":")
        return WireClient(host, int(port))

    def controller(self) -> WireClient:
        properties = (self.cluster.data / f"controller-{CONTROLLER_ID}" / "server.properties").read_text()
        (listeners,) = [line for line in properties.splitlines() if line.startswith("listeners=")]
        return WireClient("127.0.0.1", int(listeners.rpartition(":")[2]))

    def ask(self, api: str, version: int, **values: Any) -> Any:
        with self.broker() as wire_client:
            return wire_client.ask(api, version, **values)

    def ask_controller(self, api: str, version: int, **values: Any) -> Any:
        with self.controller() as wire_client:
            return wire_client.ask(api, version, **values)

    def ask_leader(self, topic: str, api: str, version: int, partition: int = 0, **values: Any) -> Any:
        with self.broker(self.leader(topic, partition)) as wire_client:
            return wire_client.ask(api, version, **values)

    def name(self, prefix: str = "t") -> str:
        return f"{prefix}-{next(self._numbers)}"

    def topic(self, partitions: int = 1, replicas: list[int] | None = None, **configs: str) -> str:
        """A new topic with this assignment, by default on all brokers; known to its leaders when this returns."""
        name = self.name()
        assignments = [
            {"partition_index": index, "broker_ids": replicas or self.cluster.brokers} for index in range(partitions)
        ]
        created = self.ask(
            "create_topics",
            7,
            topics=[
                {
                    "name": name,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": assignments,
                    "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
                }
            ],
            timeout=20_000,
        )
        assert created.topics[0].error_code.value == 0, created
        for broker in sorted(set(self.cluster.pids) & set(self.cluster.brokers)):
            self.eventually(lambda broker=broker: self._is_known(broker, name))
        return name

    def _is_known(self, broker: int, name: str) -> bool:
        """To clients of that broker, and to its replication."""
        with self.broker(broker) as wire_client:
            found = wire_client.ask("metadata", 12, topics=[{"name": name}]).topics[0]
            return bool(found.error_code.value == 0 and all(p.error_code.value == 0 for p in found.partitions))

    def metadata(self, topic: str) -> Any:
        """The topic's entry of a Metadata answer."""
        return self.ask("metadata", 12, topics=[{"name": topic}]).topics[0]

    def topic_id(self, topic: str) -> uuid.UUID:
        found: uuid.UUID = self.metadata(topic).topic_id
        return found

    def leader(self, topic: str, partition: int = 0) -> int:
        found: int = self.metadata(topic).partitions[partition].leader_id
        return found

    def eventually(self, condition: Callable[[], Any], within_s: float = WAIT_S) -> Any:
        """The first true value of `condition`, which is asked until then."""
        return eventually(condition, within_s=within_s)
