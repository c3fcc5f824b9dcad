"""The state of a broker's partitions in numbers: Kafka's kafka.server:type=ReplicaManager."""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.broker.partition import Partition, Role
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.metadata.image import Image
from heirlog.metadata.survey import Survey, in_groups


@dataclass(slots=True)
class Gauges:
    """What leaders are asked is counted of the partitions that this broker leads."""

    partition_count: int = 0
    leader_count: int = 0
    under_min_isr_partition_count: int = 0
    at_min_isr_partition_count: int = 0
    under_replicated_partitions: int = 0
    offline_replica_count: int = 0
    reassigning_partitions: int = 0
    producer_id_count: int = 0
    """Idempotent producers, each in every partition that it has written to."""
    isr_expands: int = 0
    """Since the start; so the other two."""
    isr_shrinks: int = 0
    failed_isr_updates: int = 0
    records_discarded: int = 0
    """Ours: what followers here have cut because a leader elected on a lossy basis did not have it."""


def take_gauges(replicas: ReplicaManager, image: Image) -> Survey[Gauges]:
    # those that have left are counted first: one that leaves while we count must not count twice, sums never go back
    gauges = Gauges(
        isr_expands=replicas.traffic.isr_expands,
        isr_shrinks=replicas.traffic.isr_shrinks,
        failed_isr_updates=replicas.traffic.failed_isr_updates,
        records_discarded=replicas.discarding.records_discarded,
    )
    for group in in_groups(replicas.all_partitions()):
        for partition in group:
            gauges.partition_count += 1
            gauges.offline_replica_count += partition.offline
            gauges.producer_id_count += len(partition.log.producers.producers)
            gauges.isr_expands += partition.isr_expands
            gauges.isr_shrinks += partition.isr_shrinks
            gauges.failed_isr_updates += partition.failed_isr_updates
            if partition.role is Role.LEADER:
                _count_led(gauges, partition, image)
        yield
    return gauges


def _count_led(gauges: Gauges, partition: Partition, image: Image) -> None:
    in_sync = len(partition.isr.committed)
    gauges.leader_count += 1
    gauges.under_replicated_partitions += in_sync < len(partition.replicas)
    if in_sync <= partition.min_isr:
        gauges.at_min_isr_partition_count += in_sync == partition.min_isr
        gauges.under_min_isr_partition_count += in_sync < partition.min_isr
    state = image.partition(partition.topic_id, partition.index)
    gauges.reassigning_partitions += state is not None and state.is_reassigning
