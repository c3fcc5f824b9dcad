"""Which partition a line of `heirlog produce` goes to."""

from __future__ import annotations

import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from heirlog.cli.errors import CommandError
from heirlog.cli.line_records import LineRecord
from heirlog.cli.names import no_such_partition
from heirlog.cli.next_steps import with_next_step
from heirlog.protocol.batch import NewRecord
from heirlog.protocol.errors import ErrorCode, error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client


class Places:
    """Where the records of one topic go. partition: all go there; None: by key, without a key in turn."""

    def __init__(self, client: Client, topic: str, partition: int | None) -> None:
        """Raises CommandError if there is no such topic or partition, KafkaError, OSError."""
        self.topic = topic
        self.count = partition_count(client, topic)
        if partition is not None and partition >= self.count:
            raise CommandError(no_such_partition(topic, self.count, partition))
        self._partition = partition
        self._turn = 0

    def batches(self, lines: Sequence[LineRecord]) -> dict[int, list[NewRecord]]:
        """The records by partition; those without a time get the time of now."""
        now_ms = time.time_ns() // 1_000_000
        batches: dict[int, list[NewRecord]] = {}
        for key, value, headers, timestamp_ms, partition, _ in lines:
            record = (key, value, headers, now_ms if timestamp_ms is None else timestamp_ms)
            batches.setdefault(self._place(key, partition), []).append(record)
        return batches

    def checked(self, line: LineRecord) -> LineRecord:
        """The same. Raises CommandError if it names another topic, or a partition that there is not."""
        strange = None
        if line.topic is not None and line.topic != self.topic:
            strange = f"the record is for topic {line.topic}, and this command writes to {self.topic} only"
        elif line.partition is not None and line.partition >= self.count:
            strange = no_such_partition(self.topic, self.count, line.partition)
        if strange is not None:
            raise CommandError(f"{strange}; what was before it is sent")
        return line

    def _place(self, key: bytes | None, named: int | None) -> int:
        if self._partition is not None:
            return self._partition
        if named is not None:
            return named
        if key is not None:
            return (murmur2(key) & 0x7FFFFFFF) % self.count
        self._turn += 1
        return (self._turn - 1) % self.count


def partition_count(client: Client, topic: str) -> int:
    """Raises CommandError if there is no such topic."""
    found = client.metadata([topic]).topics[0]
    if found.error_code:
        code = error_code(found.error_code)
        sentence = f"topic {topic} cannot be used ({code.name})"
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandError(with_next_step(sentence, code))
        similar = get_close_matches(topic, client.topic_names())
        guess = f"did you mean {' or '.join(similar)}? If not, create it: " if similar else "to create it: "
        raise CommandError(f"{sentence}; {guess}heirlog topics create {topic}")
    return len(found.partitions)


def murmur2(data: bytes) -> int:
    """Kafka's hash of keys (its default partitioner), so that a key goes where Java clients send it."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * m & mask
        word = (word ^ word >> 24) * m & mask
        value = value * m & mask ^ word
    if tail := data[whole:]:
        value = (value ^ int.from_bytes(tail, "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return value ^ value >> 15
