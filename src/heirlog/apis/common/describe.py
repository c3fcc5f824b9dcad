"""What Metadata, DescribeTopicPartitions and DescribeCluster say in the same words."""

from __future__ import annotations

from collections.abc import Set

from heirlog.metadata.acls import OPERATIONS, ResourceType, bit_field
from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration, PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import NO_LEADER, BrokerId, Endpoint

# without an authorizer everyone may do everything; with one, the guards say what
TOPIC_OPERATIONS = bit_field(OPERATIONS[ResourceType.TOPIC])
CLUSTER_OPERATIONS = bit_field(OPERATIONS[ResourceType.CLUSTER])


def live_brokers(
    image: Image, node_id: int, listener: str, just_fenced: Set[BrokerId] = frozenset()
) -> list[tuple[BrokerRegistration, Endpoint]]:
    """The brokers that clients on `listener` see, and where: those that are unfenced and have that listener.

    just_fenced: fenced ones that are listed in addition to others (`broker.lost_leaders`).

    Where that is none, this broker, `node_id`: it is alive, although fenced still or again. Clients keep an answer
    without brokers, and some ask no broker again for minutes.
    """
    found = [(broker, broker.endpoint(listener)) for _, broker in sorted(image.brokers.items())]
    there = [(broker, endpoint) for broker, endpoint in found if endpoint is not None]
    live = [(broker, endpoint) for broker, endpoint in there if not broker.fenced]
    if live and just_fenced:
        return [(broker, endpoint) for broker, endpoint in there if not broker.fenced or broker.id in just_fenced]
    return live or [(broker, endpoint) for broker, endpoint in there if broker.id == node_id]


def leader_error(image: Image, partition: PartitionRegistration, listener: str) -> ErrorCode:
    """Why a client on `listener` cannot go to the leader, if so."""
    if partition.leader == NO_LEADER:
        return ErrorCode.LEADER_NOT_AVAILABLE
    leader = image.brokers.get(partition.leader)
    if leader is None or leader.fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if leader.endpoint(listener) is None:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.NONE


def offline_replicas(image: Image, partition: PartitionRegistration, listener: str) -> list[int]:
    """Replicas whose broker is gone, fenced, without this listener, or without the replica's directory."""
    offline = []
    for replica in partition.replicas:
        broker = image.brokers.get(replica)
        if (
            broker is None
            or broker.fenced
            or broker.endpoint(listener) is None
            or not broker.has_online(partition.directory_of(replica))
        ):
            offline.append(int(replica))
    return offline
