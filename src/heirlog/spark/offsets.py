"""A stream's offset: Spark's JSON, and data that distinguishes a lost record from one that never existed.

    {"events": {"0": 1200, "1": 1180},                        the next offsets to read, as Spark's Kafka source writes
     "@heirlog": {"topicIds": {"events": "Vx7..."},           which topic of this name was read
                  "epochs": {"events": {"0": 4, "1": 4}},     leader epoch of the last record before the offset
                  "begins": {"events": {"0": 900, "1": 950}}, where a query's first batch begins
                  "losses": [{...}]}}                         what this batch skips (heirlog.spark.loss)

`begins` is only in the offset from which a query starts and in the end of its first batch. Spark stores no more than
the ends of batches. Each time that it runs the first one, also after a restart, it asks again where the query starts,
and by then `latest` is another offset.

No topic name begins with `@`, so the member cannot be a topic. A checkpoint written by Spark's own source does not have
the member and is read, too; then the losses cannot be checked until the next batch stores the member. The members are
sorted by name, so that equal offsets are equal texts: Spark compares the texts to see whether there are new records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heirlog.protocol.types import uuid_from_text, uuid_text
from heirlog.spark.loss import Loss
from heirlog.spark.offset_limits import TopicPartition, partition_numbers
from heirlog.spark.option_values import OptionError

MEMBER = "@heirlog"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the query's first batch begins; empty in later offsets."""

    @property
    def topics(self) -> set[str]:
        """Topics that were read, and those that were deleted in between."""
        return {topic for topic, _ in self.offsets} | self.topic_ids.keys()

    def as_json(self) -> dict[str, Any]:
        member: dict[str, Any] = {
            "topicIds": {topic: uuid_text(topic_id) for topic, topic_id in sorted(self.topic_ids.items())},
            "epochs": by_topic(self.epochs),
        }
        if self.begins:
            member["begins"] = by_topic(self.begins)
        if self.losses:
            member["losses"] = [loss.as_json() for loss in sorted(self.losses)]
        return {**by_topic(self.offsets), MEMBER: member}

    def resumed(self, start: StreamOffset) -> dict[TopicPartition, int]:
        """The first offsets of the batch between `start` and this offset: `start`, or where a skipped loss ends.

        The first batch names its own: Spark may have asked for this `start` later."""
        return {**start.offsets, **self.begins, **{loss.topic_partition: loss.resume for loss in self.losses}}


def stream_offset(given: Mapping[str, Any]) -> StreamOffset:
    """Raises OptionError if it is not an offset as Spark writes it."""
    offsets = partition_numbers("a stream's offset", json.dumps(given))
    member = given.get(MEMBER)
    if not isinstance(member, dict):
        return StreamOffset(offsets)
    try:
        topic_ids = {topic: uuid_from_text(text) for topic, text in member.get("topicIds", {}).items()}
        losses = tuple(Loss.from_json(loss) for loss in member.get("losses", ()))
    except (ValueError, TypeError, KeyError) as error:
        raise OptionError(f"the member {MEMBER} of a stream's offset cannot be read: {error}") from error
    epochs, begins = (partition_numbers(MEMBER, json.dumps(member.get(name, {}))) for name in ("epochs", "begins"))
    return StreamOffset(offsets, topic_ids, epochs, losses, begins)


def by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """{"topic": {"0": number}}, sorted."""
    grouped: dict[str, dict[str, int]] = {}
    for (topic, partition), number in sorted(numbers.items()):
        grouped.setdefault(topic, {})[str(partition)] = number
    return grouped


def names(partitions: Iterable[TopicPartition]) -> str:
    """For a person: events-0, events-1."""
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions))
