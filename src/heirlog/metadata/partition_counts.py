"""What a cluster's partitions add up to: how many have no leader, too few replicas in sync, the wrong leader.

Counted over an image on request; what an index already knows (`leaders`) is not counted again.

Source: KIP-966, "Metrics"; Kafka's KafkaController metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image
from heirlog.metadata.min_isr import configured_min_isr
from heirlog.metadata.survey import Survey, in_groups


@dataclass(slots=True)
class PartitionCounts:
    topics: int = 0
    partitions: int = 0
    offline: int = 0
    """Without a leader."""
    preferred_imbalance: int = 0
    """Whose leader is not the first of their replicas; those without a leader too, as on Apache Kafka."""
    under_min_isr: int = 0
    """Whose ISR is smaller than their effective min ISR."""
    electable_replicas: int = 0
    """Replicas that may be elected without a loss: members of ISR and ELR."""


def count_partitions(image: Image, static: StaticConfig) -> Survey[PartitionCounts]:
    partition_counts = PartitionCounts(topics=len(image.topics))
    for group in in_groups(image.partitions.items()):
        for topic_id, partitions in group:
            topic = image.topics.get(topic_id)
            if topic is None:
                continue
            min_isr = configured_min_isr(image, static, topic.name)
            for states in in_groups(partitions.values()):
                for state in states:
                    partition_counts.partitions += 1
                    in_sync = len(state.isr)
                    partition_counts.electable_replicas += in_sync + len(state.elr)
                    if in_sync < min_isr and in_sync < len(state.replicas):
                        partition_counts.under_min_isr += 1
                    if state.leader != state.replicas[0]:
                        partition_counts.preferred_imbalance += 1
                        partition_counts.offline += not state.has_leader
                if len(partitions) > len(states):
                    yield
        yield
    return partition_counts
