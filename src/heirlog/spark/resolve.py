"""What the options mean on this cluster now: which partitions, and from and up to which offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from heirlog.blocking import READ_UNCOMMITTED, AuthenticationFailed, Client, OffsetAt, Topic
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.spark import clients, patterns
from heirlog.spark.offset_limits import EARLIEST, LATEST, OffsetRangeLimit, TopicPartition
from heirlog.spark.offsets import names
from heirlog.spark.options import Options

T = TypeVar("T")
_log = logging.getLogger("heirlog.spark")
ALL_RECORDS = READ_UNCOMMITTED
"""The isolation under which a log ends at its high watermark."""


class NoOffset(ValueError):
    """There is no offset for a requested time, or the named partitions are not those that exist."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The partitions that are read, sorted, and the ids of their topics where the brokers have such."""

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, bytes]


def ask(options: Options, question: Callable[[Client], T], *, at_start: bool = False) -> T:
    """The cluster's answer, after as many attempts as `fetchOffset.*` grant. Raises what the last of them raised.

    at_start: of a read that was just started; where nothing listens it ends soon.

    A client retries on its own while a partition has no leader or no broker answers. A further attempt starts from the
    configured brokers, and repeats refused requests, for example for a topic that is not known yet.
    """
    for left in reversed(range(options.attempts)):
        try:
            with (clients.lend_at_start if at_start else clients.lend)(options.properties) as client:
                return question(client)
        except AuthenticationFailed:
            raise
        except (KafkaError, OSError) as error:
            if not left:
                raise
            _log.warning("retry in %d ms: %s", options.retry_interval_ms, error)
            time.sleep(options.retry_interval_ms / 1000)
    raise AssertionError("there is at least one attempt")


def subscribed(client: Client, options: Options, tolerated: Collection[str] = ()) -> Subscribed:
    """As of now. Raises KafkaError for a topic that is named and not there; a pattern may match nothing.

    tolerated: topics whose absence the caller deals with itself.
    """
    if options.topics is not None:
        found = _found(client, options.topics, tolerated)
    elif options.pattern is not None:
        pattern = patterns.compiled(options.pattern)
        # found anywhere in the name, as Spark's source does since it asks Kafka's admin client
        matching = [topic for topic in client.topic_names() if pattern.search(topic)]
        found = _found(client, matching, matching)
    else:
        named = sorted({topic for topic, _ in options.assigned or ()})
        found = _found(client, named, tolerated)
    partitions = sorted((topic.name, partition) for topic in found for partition in topic.partitions)
    if options.assigned is not None:
        partitions = [partition for partition in partitions if partition in options.assigned]
    return Subscribed(tuple(partitions), {topic.name: topic.topic_id for topic in found if topic.topic_id is not None})


def reads(options: Options, partition: TopicPartition) -> bool:
    """Whether the options subscribe to it, whatever exists."""
    if options.assigned is not None:
        return partition in options.assigned
    if options.pattern is not None:
        return patterns.compiled(options.pattern).search(partition[0]) is not None
    return partition[0] in (options.topics or ())


def _found(client: Client, names: Sequence[str], tolerated: Collection[str]) -> list[Topic]:
    """Those of the names that are there. Raises KafkaError for one that is missing and not tolerated."""
    try:
        return list(client.topics(names).values())
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        if not tolerated:
            raise _with_similar(client, names, error) from error
    # one of them does not exist; only a request for each alone shows which
    found: list[Topic] = []
    for name in names:
        try:
            found += client.topics([name]).values()
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or name not in tolerated:
                raise
    return found


def _with_similar(client: Client, names: Sequence[str], error: KafkaError) -> KafkaError:
    """The error, with topics whose names are like the missing ones."""
    there = client.topic_names()
    similar = [close for name in names if name not in there for close in get_close_matches(name, there)]
    return KafkaError(error.code, f"{error.message}; did you mean {' or '.join(similar)}?") if similar else error


def resolved(
    client: Client, limit: OffsetRangeLimit, side: str, partitions: Iterable[TopicPartition], isolation: int
) -> dict[TopicPartition, int]:
    """An offset for each partition. side: "starting" or "ending", for messages. Raises NoOffset, KafkaError."""
    partitions = list(partitions)
    if limit.offset is not None:
        return at(client, limit.offset, partitions, isolation)
    if limit.timestamp_ms is not None:
        return _at_times(client, dict.fromkeys(partitions, limit.timestamp_ms), limit, side, isolation)
    if limit.timestamps is not None:
        _check_named(f"{side}OffsetsByTimestamp", limit.timestamps, partitions)
        return _at_times(client, limit.timestamps, limit, side, isolation)
    offsets = dict(limit.offsets or {})
    if limit.default is not None:
        offsets = {**dict.fromkeys(partitions, limit.default), **offsets}
    _check_named(f"{side}Offsets", offsets, partitions)
    for word in (EARLIEST, LATEST):
        wanted = [partition for partition, offset in offsets.items() if offset == word]
        offsets.update(at(client, word, wanted, isolation))
    return offsets


def at(
    client: Client, timestamp: int, partitions: Iterable[TopicPartition], isolation: int
) -> dict[TopicPartition, int]:
    """timestamp: EARLIEST or LATEST."""
    found = listed(client, timestamp, partitions, isolation)
    return {partition: at.offset for partition, at in found.items()}


def listed(
    client: Client, timestamp: int, partitions: Iterable[TopicPartition], isolation: int
) -> dict[TopicPartition, OffsetAt]:
    """`at` with the leader epochs of its offsets."""
    wanted = dict.fromkeys(partitions, timestamp)
    return client.list_offsets(wanted, isolation=isolation) if wanted else {}


def _at_times(
    client: Client, times: Mapping[TopicPartition, int], limit: OffsetRangeLimit, side: str, isolation: int
) -> dict[TopicPartition, int]:
    found = client.list_offsets(dict(times), isolation=isolation) if times else {}
    offsets = {partition: found[partition].offset for partition in times}
    missing = [partition for partition, offset in offsets.items() if offset < 0]
    if missing and not limit.latest_if_none:
        (topic, partition), *_ = missing
        raise NoOffset(
            f"No offset matched from request of topic-partition {topic}-{partition} and timestamp "
            f"{times[topic, partition]}: it has no record that late. To start at its end instead, set "
            f"startingOffsetsByTimestampStrategy to latest"
        )
    offsets.update(at(client, LATEST, missing, isolation))
    return offsets


def _check_named(name: str, given: Iterable[TopicPartition], partitions: Iterable[TopicPartition]) -> None:
    given, partitions = set(given), set(partitions)
    if given == partitions:
        return
    unknown = given - partitions
    if unknown:
        raise NoOffset(f"{name} names partitions that are not read: {names(unknown)}. Read are: {names(partitions)}")
    hint = f", or set {name}Default to earliest or latest" if name in ("startingOffsets", "endingOffsets") else ""
    raise NoOffset(
        f"{name} must name all partitions that are read (-1 is the latest offset, -2 the earliest){hint}. "
        f"Specified: {names(given)}. Missing: {names(partitions - given)}"
    )


def epochs_before(
    client: Client,
    offsets: Mapping[TopicPartition, int],
    known: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, OffsetAt],
) -> dict[TopicPartition, int]:
    """The leader epoch of the record before each offset, if the brokers can name it.

    known: an epoch that is not above it, from an earlier offset. latest: the log end offset of each partition. Usually
    its epoch is still the known one, and no request is sent. Otherwise this is a search among the epochs since then,
    with one round trip for all partitions per step.
    """
    wanted = [partition for partition, offset in offsets.items() if offset > 0]
    high = {partition: latest[partition].leader_epoch for partition in wanted if latest[partition].leader_epoch >= 0}
    low = {partition: max(0, min(known.get(partition, 0), epoch)) for partition, epoch in high.items()}
    while asked := {tp: (low[tp] + epoch) // 2 for tp, epoch in high.items() if low[tp] < epoch}:
        ends = client.end_offset_for_epoch(asked)
        for partition, epoch in asked.items():
            if ends[partition].end_offset >= offsets[partition]:
                high[partition] = max(low[partition], min(epoch, ends[partition].leader_epoch))
            else:
                low[partition] = epoch + 1
    return high
