"""What Metadata, DescribeTopicPartitions and DescribeCluster say in the same words."""

from __future__ import annotations

from collections.abc import Set

from heirlog.metadata.acls import OPERATIONS, ResourceType, bit_field
from heirlog.metadata.image import Image
from heirlog.metadata.state import BrokerRegistration, Ids, PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import NO_LEADER, BrokerId, Endpoint, Uuid

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


class PartitionStates:
    """What one answer says about the state of partitions, to a client on `listener`.

    An answer with ten thousand partitions has few distinct leaders and placements: each is looked at once.
    """

    def __init__(self, image: Image, listener: str) -> None:
        self._image = image
        self._listener = listener
        self._leader_errors: dict[BrokerId, ErrorCode] = {}
        self._offline: dict[tuple[Ids, tuple[Uuid, ...]], list[int]] = {}

    def leader_error(self, partition: PartitionRegistration) -> ErrorCode:
        """Why the client cannot go to the leader, if so."""
        found = self._leader_errors.get(partition.leader)
        if found is None:
            found = self._leader_errors[partition.leader] = self._error_of(partition.leader)
        return found

    def _error_of(self, leader_id: BrokerId) -> ErrorCode:
        if leader_id == NO_LEADER:
            return ErrorCode.LEADER_NOT_AVAILABLE
        leader = self._image.brokers.get(leader_id)
        if leader is None or leader.fenced:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if leader.endpoint(self._listener) is None:
            return ErrorCode.LISTENER_NOT_FOUND
        return ErrorCode.NONE

    def offline_replicas(self, partition: PartitionRegistration) -> list[int]:
        """Replicas whose broker is gone, fenced, without this listener, or without the replica's directory.

        Not to be changed.
        """
        place = (partition.replicas, partition.directories)
        found = self._offline.get(place)
        if found is None:
            found = self._offline[place] = [
                int(replica) for replica in partition.replicas if self._is_offline(replica, partition)
            ]
        return found

    def _is_offline(self, replica: BrokerId, partition: PartitionRegistration) -> bool:
        broker = self._image.brokers.get(replica)
        return (
            broker is None
            or broker.fenced
            or broker.endpoint(self._listener) is None
            or not broker.has_online(partition.directory_of(replica))
        )
