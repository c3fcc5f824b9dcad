"""Which topics a group reads, and how it notices that they changed.

A group stores a hash of its subscribed topics: ids, names and numbers of partitions. A topic that is created, deleted
or gets partitions changes the hash, and a different hash is a new group epoch. Any stable function works (Kafka hashes
with XXH3 and adds racks): where another implementation wrote the group, it costs one more epoch.

Source: KIP-848; KIP-1101.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from heirlog.broker.groups.consumer.state import ConsumerGroupState
from heirlog.broker.groups.consumer.values import ConsumerGroupMember
from heirlog.metadata.image import Image
from heirlog.protocol.types import Uuid


class SubscribedTopic(NamedTuple):
    topic_id: Uuid
    partition_count: int


def known_topics(image: Image, names: Iterable[str]) -> dict[str, SubscribedTopic]:
    """Those that exist."""
    found = {}
    for name in names:
        topic = image.topic_named(name)
        if topic is not None:
            found[name] = SubscribedTopic(topic.id, len(image.partitions[topic.id]))
    return found


def metadata_hash(topics: Mapping[str, SubscribedTopic]) -> int:
    """As 64 bits with a sign; 0 if none of the topics exists."""
    if not topics:
        return 0
    digest = blake2b(digest_size=8)
    for name, topic in sorted(topics.items()):
        digest.update(topic.topic_id + topic.partition_count.to_bytes(4, "big") + name.encode() + b"\0")
    return int.from_bytes(digest.digest(), "big", signed=True)


def subscribed_topics_of(
    group: ConsumerGroupState,
    changed: ConsumerGroupMember | None = None,
    without: Iterable[str] = (),
) -> set[str]:
    """Names that some member subscribes to.

    changed: takes the place of its former self. without: members that leave.
    """
    gone = set(without)
    if changed is not None:
        gone.add(changed.member_id)
    names = set(group.subscribers)
    regexes = set(group.regex_subscribers)
    for member_id in gone:
        before = group.members.get(member_id)
        if before is not None:
            names -= {topic for topic in before.topics if group.subscribers[topic] <= _naming(group, gone, topic)}
            if before.regex is not None and group.regex_subscribers[before.regex] <= sum(
                group.members[each].regex == before.regex for each in gone if each in group.members
            ):
                regexes.discard(before.regex)
    if changed is not None:
        names |= changed.topics
        if changed.regex is not None:
            regexes.add(changed.regex)
    for regex in regexes:
        resolved = group.regexes.get(regex)
        if resolved is not None:
            names |= resolved.topics
    return names


def _naming(group: ConsumerGroupState, members: Iterable[str], topic: str) -> int:
    return sum(topic in group.members[each].topics for each in members if each in group.members)
