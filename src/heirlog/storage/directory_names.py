"""Names of the directories of partitions in a log directory.

    orders-3                               the log of partition 3 of topic orders
    orders-3.<32 hex digits>-delete        deleted: its files are removed later
    orders-3.<32 hex digits>-stray         set aside: kept until an operator removes it

The hex digits are of the topic id and a count, so that a partition can be deleted again before the files of an earlier
deletion are removed. A topic's name is shortened if the whole would be longer than a file system allows.

Source: Kafka's UnifiedLog.logDeleteDirName, logStrayDirName.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias

from heirlog.protocol.types import Uuid

TopicPartition: TypeAlias = tuple[str, int]

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
"""Kafka's suffix for logs that the metadata does not know."""

_STRAY_NAME = re.compile(r".*-(\d+)\.[0-9a-f]{32}" + STRAY_SUFFIX)
_MAX_NAME_LENGTH = 255


def parse_directory_name(name: str) -> TopicPartition | None:
    """`orders-3` → ("orders", 3); None for any other name."""
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isdecimal():
        return None
    return topic, int(partition)


def parse_deleted_name(name: str) -> tuple[TopicPartition, bool] | None:
    """The deleted log's partition, and whether `name` has only the start of the topic's name; None for other names."""
    if not name.endswith(DELETE_SUFFIX):
        return None
    key = parse_directory_name(name.rpartition(".")[0])
    return None if key is None else (key, len(name) == _MAX_NAME_LENGTH)


def stray_partition(name: str) -> int | None:
    """Partition of a log that was set aside; None for any other name."""
    match = _STRAY_NAME.fullmatch(name)
    return None if match is None else int(match[1])


def free_name(key: TopicPartition, topic_id: Uuid | None, suffix: str, is_used: Callable[[str], bool]) -> str:
    """A name for the directory of a log that is deleted or set aside."""
    topic, partition = key
    count = 0
    while True:
        unique = sha256(b"%b %d %d" % (topic_id or b"", partition, count)).hexdigest()[:32]
        ending = f"-{partition}.{unique}{suffix}"
        name = f"{topic[: _MAX_NAME_LENGTH - len(ending)]}{ending}"
        if not is_used(name):
            return name
        count += 1
