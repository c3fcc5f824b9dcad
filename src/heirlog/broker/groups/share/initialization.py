"""Where the state of a share group's partitions stands: only initialized partitions are assigned.

    subscribed ---> initializing ---> initialized ---> deleting ---> gone
                         |   ^                             |
                         '---'  refused, or no answer: taken back; a later heartbeat tries again

The lists are one record of the group (key 15), the state itself belongs to share coordinators. So each step is written
down before and after it is asked for there. A step that a coordinator did not finish is taken up by the next one:
initializing again and deleting again are harmless, because no member has the partitions meanwhile.

A topic that is deleted leaves all lists; its state goes with it.

Source: KIP-932, "Share-group state persister".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from heirlog.broker.groups.consumer.subscriptions import known_topics
from heirlog.broker.groups.share.values import (
    NamedPartitions,
    StateTopics,
    Topics,
    with_partitions,
    without_partitions,
)
from heirlog.broker.share_coordinator.state import SharePartitionKey
from heirlog.metadata.image import Image
from heirlog.protocol.types import Uuid


def to_initialize(topics: StateTopics, subscribed: Iterable[str], in_progress: Topics, image: Image) -> Topics:
    """Partitions of subscribed topics without a state. in_progress: what this coordinator is initializing."""
    found = {
        topic.topic_id: NamedPartitions(name, frozenset(range(topic.partition_count)))
        for name, topic in known_topics(image, subscribed).items()
        if topic.topic_id not in topics.deleting
    }
    return without_partitions(without_partitions(found, topics.initialized), in_progress)


def begun(topics: StateTopics, partitions: Topics) -> StateTopics:
    return StateTopics(
        with_partitions(topics.initializing, partitions),
        without_partitions(topics.initialized, partitions),
        topics.deleting,
    )


def finished(topics: StateTopics, asked: Topics, succeeded: Topics) -> StateTopics:
    """asked: what was initialized just now. A topic that was deleted meanwhile is in no list any more."""
    still = without_partitions(topics.initializing, without_partitions(topics.initializing, succeeded))
    return StateTopics(
        without_partitions(topics.initializing, asked), with_partitions(topics.initialized, still), topics.deleting
    )


def deletion_begun(topics: StateTopics, topic_ids: Collection[Uuid]) -> StateTopics:
    names = {
        topic_id: known.name
        for each in (topics.initializing, topics.initialized)
        for topic_id, known in each.items()
        if topic_id in topic_ids
    }
    return StateTopics(
        _without(topics.initializing, names), _without(topics.initialized, names), {**topics.deleting, **names}
    )


def without_topics(topics: StateTopics, topic_ids: Collection[Uuid]) -> StateTopics:
    return StateTopics(
        _without(topics.initializing, topic_ids),
        _without(topics.initialized, topic_ids),
        {topic_id: name for topic_id, name in topics.deleting.items() if topic_id not in topic_ids},
    )


def _without(topics: Topics, topic_ids: Collection[Uuid]) -> Topics:
    return {topic_id: known for topic_id, known in topics.items() if topic_id not in topic_ids}


def topic_ids_in(topics: StateTopics) -> set[Uuid]:
    return {*topics.initializing, *topics.initialized, *topics.deleting}


def keys_of(group_id: str, topics: Topics) -> list[SharePartitionKey]:
    return [
        SharePartitionKey(group_id, topic_id, number)
        for topic_id, (_, partitions) in topics.items()
        for number in sorted(partitions)
    ]


def all_partitions(topic_ids: Iterable[Uuid], names: Mapping[Uuid, str], image: Image) -> Topics:
    """Of topics that are in the image."""
    return {
        topic_id: NamedPartitions(names[topic_id], frozenset(image.partitions[topic_id]))
        for topic_id in topic_ids
        if topic_id in image.topics
    }
