"""The part of a broker that descriptions are made from: an image that consists of records, and a configuration.

Topic a has a partition with a leader and one without; topic b has one partition. Broker 3 is fenced.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from heirlog.apis.common.api import Role
from heirlog.broker.lost_leaders import LostLeaders
from heirlog.context import Context
from heirlog.log_levels import LogLevels
from heirlog.metadata.apply import apply_all
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.image import Image
from heirlog.node.node import Node
from heirlog.node.router import ListenerRoutes
from heirlog.node.wire import api_keys
from heirlog.pending import Pending
from heirlog.protocol.records import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from heirlog.protocol.types import Endpoint
from heirlog.testing.conformance.body import ManualEnv

LISTENER = "PLAINTEXT"
A, B = b"a" * 16, b"b" * 16
STATIC = parse_static(
    {
        "node.id": "1",
        "process.roles": "broker",
        "listeners": "PLAINTEXT://localhost:9092",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "max.request.partition.size.limit": "10",
        "log.dirs": "/data",
    }
)


def broker(number: int, fenced: bool = False) -> RegisterBrokerRecord:
    end_point = RegisterBrokerRecord.BrokerEndpoint(name=LISTENER, host="h", port=9000 + number, security_protocol=0)
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=bytes([number]) * 16,
        broker_epoch=number,
        end_points=[end_point],
        fenced=fenced,
    )


def partition(topic_id: bytes, number: int, **more: Any) -> PartitionRecord:
    values = {"replicas": [1, 2, 3], "isr": [1, 2], "leader": 1, "leader_epoch": 4, "partition_epoch": 9}
    return PartitionRecord(topic_id=topic_id, partition_id=number, **(values | more))


def image_with(*more: Any) -> Image:
    image = Image()
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=27),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        broker(1),
        broker(2),
        broker(3, fenced=True),
        TopicRecord(name="a", topic_id=A),
        partition(A, 0),
        partition(A, 1, leader=-1, isr=[], eligible_leader_replicas=[2, 3], last_known_elr=[3]),
        TopicRecord(name="b", topic_id=B),
        partition(B, 0),
        *more,
    ]
    apply_all(image, records, 0, 1)
    return image


def described_node() -> Any:
    """`created`: the topics that were to be created."""
    address = Endpoint("localhost", 9092)
    listener = ListenerRoutes(LISTENER, address, address, Role.BROKER)
    node = SimpleNamespace(
        image=image_with(), config=STATIC, cluster_id="cluster", created=[], log_levels=LogLevels(), authorizer=None
    )
    node.quorum = SimpleNamespace(kraft_version=1)
    node.api_keys = lambda name: api_keys(listener)
    node.sorted_brokers = lambda: Node.sorted_brokers(node)  # type: ignore[arg-type]
    node.any_live_broker = lambda: Node.any_live_broker(node)  # type: ignore[arg-type]
    node.create_missing_topics = lambda names, context=None: node.created.extend(names)
    node.waiting = []

    def create_missing_topic(name: str, wait_ms: int | None = None) -> Pending[bool]:
        node.created.append(name)
        node.waiting.append(Pending())
        return node.waiting[-1]  # type: ignore[no-any-return]

    node.create_missing_topic = create_missing_topic
    node.env = ManualEnv()
    node.broker = SimpleNamespace(lost_leaders=LostLeaders(node.env))
    node.broker.lost_leaders.on_image(node.image, None)
    return node


def context(version: int, connection: object = None) -> Context:
    return Context(version, "client", "here", LISTENER, connection or object())
