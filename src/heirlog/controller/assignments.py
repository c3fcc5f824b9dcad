"""The rules for a new partition's assignment, and the state in which a partition is created.

The ISR of a new partition is the active part of its assignment. A replica that is not active at creation is not
eligible, because it never had any record. So a partition without an active replica cannot be created.
"""

from __future__ import annotations

from heirlog.controller.leadership import Leadership
from heirlog.metadata.image import Image
from heirlog.metadata.state import Ids, PartitionRegistration
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.types import LeaderEpoch, PartitionEpoch


def bad_assignment(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def check_replicas(image: Image, replicas: Ids) -> None:
    """Raises KafkaError INVALID_REPLICA_ASSIGNMENT."""
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    if len(set(replicas)) != len(replicas):
        raise bad_assignment(f"The manual partition assignment {list(replicas)} includes a broker more than once.")
    for replica in replicas:
        if replica not in image.brokers:
            raise bad_assignment(
                f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            )


def first_state(
    image: Image, leadership: Leadership, partition: int, replicas: Ids, *, manual: bool
) -> PartitionRegistration:
    """Raises KafkaError: none of the replicas is active."""
    isr = tuple(replica for replica in replicas if image.brokers[replica].is_active)
    if not isr:
        code = ErrorCode.INVALID_REPLICA_ASSIGNMENT if manual else ErrorCode.INVALID_REPLICATION_FACTOR
        raise KafkaError(
            code,
            f"All brokers specified in the partition assignment for partition {partition} are fenced or in "
            "controlled shutdown.",
        )
    return PartitionRegistration(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
        directories=tuple(leadership.default_directory(replica) for replica in replicas),
    )
