"""Requests about offsets for many partitions at once, and what their answers say of each.

Source: KIP-79 (ListOffsets), KIP-320 (OffsetForLeaderEpoch), KIP-496 and KIP-709 (OffsetFetch of one group or many).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar

from heirlog.client.cluster_view import ClusterView
from heirlog.client.errors import EpochEnd
from heirlog.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from heirlog.protocol.types import Endpoint

LATEST = -1
EARLIEST = -2
CONSUMER = -1
"""The replica id of clients that are not replicas."""
NEWEST_COMMIT_BY_NAME = 9
NEWEST_COMMIT_WITH_RETENTION = 4
NEWEST_OFFSET_FETCH_BY_NAME = 9
BROKERS_RETENTION = -1
SIMPLE_CONSUMER = -1
"""The generation of who commits without being a member of the group."""

T = TypeVar("T")
TopicPartition: TypeAlias = tuple[str, int]


class OffsetAt(NamedTuple):
    """The answer of `list_offsets` for one partition."""

    offset: int
    """-1: there is no record that late."""
    timestamp_ms: int
    """Of that record; -1 for the earliest and the latest offset."""
    leader_epoch: int
    """-1 from brokers that do not say."""


class CommittedOffset(NamedTuple):
    """A group's committed offset of one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


Answers: TypeAlias = Iterator[tuple[TopicPartition, int, T]]
"""Partition, error code, and what holds if that is 0."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def list_offsets(
    wanted: Mapping[TopicPartition, int], view: ClusterView, isolation: int, timeout_ms: int
) -> ListOffsetsRequest:
    """wanted: a timestamp in ms, LATEST or EARLIEST for each partition."""
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=isolation,
        timeout_ms=timeout_ms,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=partition,
                        current_leader_epoch=view.leader(topic, partition).epoch,
                        timestamp=wanted[topic, partition],
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(wanted).items()
        ],
    )


def listed_offsets(response: ListOffsetsResponse) -> Answers[OffsetAt]:
    for topic in response.topics:
        for found in topic.partitions:
            at = OffsetAt(found.offset, found.timestamp, found.leader_epoch)
            yield (topic.name, found.partition_index), found.error_code, at


def epoch_ends(wanted: Mapping[TopicPartition, int], view: ClusterView) -> OffsetForLeaderEpochRequest:
    """wanted: a leader epoch for each partition."""
    return OffsetForLeaderEpochRequest(
        replica_id=CONSUMER,
        topics=[
            OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                        partition=partition,
                        current_leader_epoch=view.leader(topic, partition).epoch,
                        leader_epoch=wanted[topic, partition],
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(wanted).items()
        ],
    )


def found_epoch_ends(response: OffsetForLeaderEpochResponse) -> Answers[EpochEnd]:
    for topic in response.topics:
        for found in topic.partitions:
            end = EpochEnd(found.leader_epoch, found.end_offset)
            yield (topic.topic, found.partition), found.error_code, end


def find_coordinator(key: str, key_type: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])


def found_coordinator(response: FindCoordinatorResponse) -> tuple[int, str | None, Endpoint]:
    """Error code, message, and where it is; before version 4 the answer is about one group."""
    found = response.coordinators[0] if response.coordinators else response
    return found.error_code, found.error_message, Endpoint(found.host, found.port)


def commit(
    group: str, offsets: Mapping[TopicPartition, CommittedOffset], retention_ms: int | None = None
) -> OffsetCommitRequest:
    """retention_ms: None for the broker's."""
    return OffsetCommitRequest(
        group_id=group,
        retention_time_ms=BROKERS_RETENTION if retention_ms is None else retention_ms,
        generation_id_or_member_epoch=SIMPLE_CONSUMER,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offsets[topic, partition].offset,
                        committed_leader_epoch=offsets[topic, partition].leader_epoch,
                        committed_metadata=offsets[topic, partition].metadata,
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )


def commit_codes(response: OffsetCommitResponse) -> Answers[None]:
    for topic in response.topics:
        for done in topic.partitions:
            yield (topic.name, done.partition_index), done.error_code, None


def committed(group: str, partitions: Iterable[TopicPartition] | None) -> OffsetFetchRequest:
    """For version 8 and later as well as before; None: all. Offsets of open transactions are waited for (KIP-447)."""
    if partitions is None:
        whole = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)
        return OffsetFetchRequest(group_id=group, topics=None, groups=[whole], require_stable=True)
    wanted = by_topic(partitions)
    return OffsetFetchRequest(
        group_id=group,
        topics=[
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in wanted.items()
        ],
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
                    for topic, indexes in wanted.items()
                ],
            )
        ],
        require_stable=True,
    )


def found_committed(response: OffsetFetchResponse) -> tuple[int, list[tuple[TopicPartition, int, CommittedOffset]]]:
    """The error code of the whole, and the partitions; an offset of -1 is none."""
    holder = response.groups[0] if response.groups else response
    partitions = [
        (
            (topic.name, found.partition_index),
            found.error_code,
            CommittedOffset(found.committed_offset, found.committed_leader_epoch, found.metadata or ""),
        )
        for topic in holder.topics
        for found in topic.partitions
    ]
    return holder.error_code, partitions
