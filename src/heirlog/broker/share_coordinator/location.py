"""Which broker is the share coordinator of a share partition, by the image."""

from __future__ import annotations

from heirlog.broker.internal_topic_shards import partition_for
from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.metadata.image import Image
from heirlog.metadata.topic_name import SHARE_STATE_TOPIC
from heirlog.protocol.types import NO_LEADER, BrokerId


def share_coordinator_of(image: Image, key: SharePartitionKey) -> BrokerId:
    """NO_LEADER if there is none now, or the topic does not exist."""
    topic = image.topic_named(SHARE_STATE_TOPIC)
    if topic is None:
        return NO_LEADER
    state = image.partition(topic.id, partition_for(key.text, len(image.partitions[topic.id])))
    return NO_LEADER if state is None else state.leader
