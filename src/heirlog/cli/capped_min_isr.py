"""The warning for a user who sets more min.insync.replicas than a topic has replicas.

Kafka and heirlog take such a value (KIP-966: "effective min ISR"), which counts as the number of replicas then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.cli.cleared import warn
from heirlog.cli.partition_filters import MIN_ISR

if TYPE_CHECKING:
    from heirlog.blocking import Client


def warn_of_capped(topic: str, value: str | None, replicas: int) -> None:
    """value: as it was set. replicas: of the partition that has the fewest; below 1 if that is not known."""
    if value is not None and value.isdecimal() and 0 < replicas < int(value):
        warn(
            f"{MIN_ISR}={value} counts as {replicas} in topic {topic}, whose partitions have no more replicas "
            "(heirlog topics describe)"
        )


def fewest_replicas(client: Client, topic: str) -> int:
    partitions = client.metadata([topic]).topics[0].partitions
    return min((len(partition.replica_nodes) for partition in partitions), default=0)
