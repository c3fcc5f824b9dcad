"""The state of a broker's partitions in numbers: Kafka's kafka.server:type=ReplicaManager."""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.survey import Survey, in_groups

LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000
"""What its coordinator may take to abort a transaction after its time limit, as on Apache Kafka."""


@dataclass(slots=True)
class ReplicaManagerMetrics:
    """Values that only a leader knows are counted over the partitions that this broker leads."""

    partition_count: int = 0
    leader_count: int = 0
    under_min_isr_partition_count: int = 0
    at_min_isr_partition_count: int = 0
    under_replicated_partitions: int = 0
    offline_replica_count: int = 0
    reassigning_partitions: int = 0
    producer_id_count: int = 0
    """Idempotent producers, each in every partition that it has written to."""
    partitions_with_late_transactions: int = 0
    """With a transaction that no coordinator can let open for so long: it may hang."""
    isr_expands: int = 0
    """Number since the start; the same for the next two."""
    isr_shrinks: int = 0
    failed_isr_updates: int = 0
    records_discarded: int = 0
    """heirlog only: records that followers here truncated because a leader elected on a lossy basis lacked them."""


def late_since_ms(static: StaticConfig, wall_ms: int) -> int:
    """Wall time; an open transaction whose last record is older is late."""
    return wall_ms - static.int("transaction.max.timeout.ms") - LATE_TRANSACTION_BUFFER_MS


def count_replicas(replicas: ReplicaManager, image: Image, late_since_ms: int) -> Survey[ReplicaManagerMetrics]:
    # count partitions that have left first: one that leaves meanwhile must not count twice, and sums never decrease
    metrics = ReplicaManagerMetrics(
        isr_expands=replicas.topic_stats.isr_expands,
        isr_shrinks=replicas.topic_stats.isr_shrinks,
        failed_isr_updates=replicas.topic_stats.failed_isr_updates,
        records_discarded=replicas.discarded_records.records_discarded,
    )
    for group in in_groups(replicas.all_partitions()):
        for partition in group:
            metrics.partition_count += 1
            metrics.offline_replica_count += partition.offline
            metrics.producer_id_count += len(partition.log.producers.producers)
            metrics.isr_expands += partition.isr_expands
            metrics.isr_shrinks += partition.isr_shrinks
            metrics.failed_isr_updates += partition.failed_isr_updates
            if partition.role is ReplicaRole.LEADER:
                _count_led(metrics, partition, image)
                metrics.partitions_with_late_transactions += _has_late_transaction(partition, late_since_ms)
        yield
    return metrics


def _count_led(metrics: ReplicaManagerMetrics, partition: Partition, image: Image) -> None:
    in_sync = len(partition.isr.committed)
    metrics.leader_count += 1
    metrics.under_replicated_partitions += in_sync < len(partition.replicas)
    if in_sync <= partition.min_isr:
        metrics.at_min_isr_partition_count += in_sync == partition.min_isr
        metrics.under_min_isr_partition_count += in_sync < partition.min_isr
    state = image.partition(partition.topic_id, partition.index)
    metrics.reassigning_partitions += state is not None and state.is_reassigning


def _has_late_transaction(partition: Partition, late_since_ms: int) -> bool:
    producers = partition.log.producers
    oldest = producers.transactions.oldest_ongoing
    # records may have no time
    return oldest is not None and 0 < producers.producers[oldest].last_timestamp < late_since_ms
