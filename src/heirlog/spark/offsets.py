"""A stream's offset: Spark's JSON, and data that distinguishes a lost record from one that never existed.

    {"events": {"0": 1200, "1": 1180},                        where to read on, as Spark's Kafka source writes it
     "@heirlog": {"topicIds": {"events": "Vx7..."},           which topic of this name was read
                  "epochs": {"events": {"0": 4, "1": 4}},     leader epoch of the last record before the offset
                  "losses": [{...}]}}                         what this batch steps over (heirlog.spark.loss)

`@` begins no topic's name, so the member cannot be taken for one. A checkpoint written by Spark's own source lacks it
and is read all the same; what it does not say cannot be checked, and is learned with the next batch. The order of the
members is that of the names, so that equal offsets are equal texts: Spark compares them to see whether there are new
records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heirlog.protocol.types import uuid_from_text, uuid_text
from heirlog.spark.loss import Loss
from heirlog.spark.options import OptionError, TopicPartition, partition_numbers

MEMBER = "@heirlog"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()

    @property
    def topics(self) -> set[str]:
        """Those that were read, and those that went meanwhile."""
        return {topic for topic, _ in self.offsets} | self.topic_ids.keys()

    def as_json(self) -> dict[str, Any]:
        member: dict[str, Any] = {
            "topicIds": {topic: uuid_text(topic_id) for topic, topic_id in sorted(self.topic_ids.items())},
            "epochs": by_topic(self.epochs),
        }
        if self.losses:
            member["losses"] = [loss.as_json() for loss in sorted(self.losses)]
        return {**by_topic(self.offsets), MEMBER: member}

    def resumed(self, start: StreamOffset) -> dict[TopicPartition, int]:
        """Where the batch between `start` and this offset begins: at `start`, but behind what it steps over."""
        return {**start.offsets, **{loss.topic_partition: loss.resume for loss in self.losses}}


def stream_offset(given: Mapping[str, Any]) -> StreamOffset:
    """Raises OptionError for what is no offset of Spark's."""
    offsets = partition_numbers("a stream's offset", json.dumps(given))
    member = given.get(MEMBER)
    if not isinstance(member, dict):
        return StreamOffset(offsets)
    try:
        topic_ids = {topic: uuid_from_text(text) for topic, text in member.get("topicIds", {}).items()}
        losses = tuple(Loss.from_json(loss) for loss in member.get("losses", ()))
    except (ValueError, TypeError, KeyError) as error:
        raise OptionError(f"the member {MEMBER} of a stream's offset cannot be read: {error}") from error
    return StreamOffset(offsets, topic_ids, partition_numbers(MEMBER, json.dumps(member.get("epochs", {}))), losses)


def by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """{"topic": {"0": number}}, sorted."""
    grouped: dict[str, dict[str, int]] = {}
    for (topic, partition), number in sorted(numbers.items()):
        grouped.setdefault(topic, {})[str(partition)] = number
    return grouped


def names(partitions: Iterable[TopicPartition]) -> str:
    """For a person: events-0, events-1."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
