"""The effective min ISR of a partition: how many in-sync replicas it takes to commit a record.

    min(min.insync.replicas, number of the partition's own assigned replicas)

The value is the topic's, else the one stored under the node id of the controller that asks, else the cluster-wide one,
else the node's own server.properties, else 1. A value stored under any other broker id is never looked at. While ELR is
on there is always a cluster-wide value and never a broker's, so that the controller, which decides on the ELR, and the
leader, which moves the high watermark, resolve the same number.

Adding replicas count as assigned. The cap is each partition's own: Kafka takes partition 0's for all of a topic, which
lets a partition with fewer replicas never commit, or one with more commit too early.

Source: KIP-966, "ELR invariants".
"""

from __future__ import annotations

from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.types import Uuid

MIN_ISR = "min.insync.replicas"


def configured_min_isr(image: Image, static: StaticConfig, topic: str) -> int:
    """`min.insync.replicas` as it resolves for the topic, uncapped."""
    stored = image.config(TOPIC_RESOURCE, topic, MIN_ISR)
    if stored is None and static.is_controller:
        stored = image.config(BROKER_RESOURCE, str(static.node_id), MIN_ISR)
    if stored is None:
        stored = image.config(BROKER_RESOURCE, "", MIN_ISR)
    return static.int(MIN_ISR) if stored is None else int(stored)


def min_isr_of(image: Image, static: StaticConfig, topic_id: Uuid, state: PartitionRegistration) -> int:
    """The effective min ISR of a partition of that topic."""
    return min(configured_min_isr(image, static, image.topics[topic_id].name), len(state.replicas))
