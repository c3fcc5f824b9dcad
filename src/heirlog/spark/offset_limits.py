"""Where a read begins and ends, as its options say it.

    startingTimestamp > startingOffsetsByTimestamp > startingOffsets     where to begin: the first that is given
    endingTimestamp   > endingOffsetsByTimestamp   > endingOffsets       where to end: batch only

`startingOffsetsDefault` and `endingOffsetsDefault` are for partitions that the JSON does not name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from heirlog.spark.option_values import LARGEST, OptionError, whole

TopicPartition: TypeAlias = tuple[str, int]

EARLIEST = -2
LATEST = -1
_NAMED_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class OffsetRangeLimit:
    """Where a read begins or ends.

    offset: EARLIEST or LATEST for all partitions. offsets: an offset, EARLIEST or LATEST by partition; `default` for
    partitions that are not named (None refuses them). timestamp_ms, timestamps: the first record not before that time.
    """

    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    default: int | None = None
    timestamp_ms: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    text: str = ""
    """The JSON as given: it may contain what a stream's offset stores in addition to the offsets."""
    latest_if_none: bool = False
    """If no record has the timestamp or a later one: True for the end of the partition, False for an error."""


def offset_limit(options: Mapping[str, str], side: str, offset: int) -> OffsetRangeLimit:
    """side: "starting" or "ending". The more precise option wins, as in Spark."""
    latest_if_none = True
    if side == "starting":
        strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
        if strategy not in ("error", "latest"):
            raise OptionError(f"startingOffsetsByTimestampStrategy is '{strategy}'; it can be error or latest")
        latest_if_none = strategy == "latest"
    name = f"{side}Timestamp"
    if name.lower() in options:
        timestamp_ms = whole(name, options[name.lower()].strip(), EARLIEST, LARGEST)
        return OffsetRangeLimit(timestamp_ms=timestamp_ms, latest_if_none=latest_if_none)
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in options:
        timestamps = partition_numbers(name, options[name.lower()])
        for partition, timestamp_ms in timestamps.items():
            if timestamp_ms < EARLIEST:
                raise OptionError(f"{name}: {timestamp_ms} for {partition[0]}-{partition[1]} is not a timestamp in ms")
        return OffsetRangeLimit(timestamps=timestamps, latest_if_none=latest_if_none)
    name = f"{side}Offsets"
    default = _default(options, f"{name}Default")
    if name.lower() not in options:
        # no JSON names no partition
        return OffsetRangeLimit(offset=offset if default is None else default)
    value = options[name.lower()].strip()
    if value.lower() in _NAMED_OFFSETS:
        return OffsetRangeLimit(offset=_NAMED_OFFSETS[value.lower()])
    offsets = partition_offsets(name, value)
    return OffsetRangeLimit(offsets=offsets, default=default, text=value)


def _default(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name.lower())
    if value is None:
        return None
    if value.strip().lower() not in _NAMED_OFFSETS:
        raise OptionError(f"{name} is '{value}'; it can be earliest or latest")
    return _NAMED_OFFSETS[value.strip().lower()]


def refuse_for_batch(limit: OffsetRangeLimit, side: str, offset: int, word: str) -> None:
    if limit.offset == offset:
        raise OptionError(f"{side} offset can't be {word} for batch queries")
    if limit.default == offset:
        raise OptionError(f"{side}OffsetsDefault can't be {word} for batch queries")
    for (topic, partition), given in (limit.offsets or {}).items():
        if given == offset:
            raise OptionError(f"{side}Offsets for {topic}-{partition} can't be {word} for batch queries")


def refuse_reversed(
    begins: str, starts: Mapping[TopicPartition, int] | None, ends: str, stops: Mapping[TopicPartition, int] | None
) -> None:
    for (topic, partition), start in (starts or {}).items():
        stop = (stops or {}).get((topic, partition), LATEST)
        # -1 and -2 are not offsets yet
        if 0 <= stop < start:
            raise OptionError(f"{begins} for {topic}-{partition} is {start}, behind its {ends}, {stop}: exchange them")


def partition_offsets(name: str, value: str) -> dict[TopicPartition, int]:
    """Spark's JSON of offsets, without our own member of a stream's offset. Raises OptionError."""
    offsets = partition_numbers(name, value)
    for (topic, partition), offset in offsets.items():
        if offset < EARLIEST:
            raise OptionError(f"{name}: {offset} for {topic}-{partition}; -2 is the earliest offset, -1 the latest")
    return offsets


def partition_numbers(name: str, value: str) -> dict[TopicPartition, int]:
    """{"topic": {"0": 5}}; the words "earliest" and "latest" are not allowed as numbers."""
    problem = OptionError(
        f'{name} must be earliest, latest or JSON like {{"topic":{{"0":23,"1":-2}}}}, not \'{value}\''
    )
    try:
        parsed = json.loads(value)
    except ValueError as error:
        raise problem from error
    if not isinstance(parsed, dict):
        raise problem
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if topic.startswith("@"):  # not a topic's name, but what a stream's offset stores in addition to the offsets
            continue
        if not isinstance(partitions, dict):
            raise problem
        for partition, number in partitions.items():
            if not re.fullmatch(r"[+-]?\d{1,10}", partition) or type(number) is not int or number > LARGEST:
                raise problem
            numbers[topic, int(partition)] = number
    return numbers
