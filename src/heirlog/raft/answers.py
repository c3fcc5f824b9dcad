"""Builds the quorum's responses; `fetch_service` and `observer` have the rules that choose them.

Every answer about the metadata partition names the leader as this node knows it, and its endpoint. Trap: a node that is
not the leader names the real one or none, never itself; otherwise a follower would fetch from it for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from heirlog.env import Region
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Endpoint
from heirlog.raft.snapshot import SnapshotId

HIGH_WATERMARK_NOT_SENT = 2**63 - 1
"""Value for a Fetch below v18: the follower does not say which high watermark it knows."""


class LeaderAndEpoch(NamedTuple):
    """The leader and its epoch, as this node knows them."""

    leader_id: int
    epoch: int
    endpoint: Endpoint | None


def metadata_partition(request: FetchRequest) -> FetchRequest.FetchPartition | None:
    """The metadata partition of the request; None if the request names anything else."""
    if len(request.topics) != 1:
        return None
    topic = request.topics[0]
    named = topic.topic_id == METADATA_TOPIC_ID or (topic.topic_id == ZERO_UUID and topic.topic == METADATA_TOPIC)
    if not named or len(topic.partitions) != 1 or topic.partitions[0].partition != 0:
        return None
    return topic.partitions[0]


def metadata_snapshot(request: FetchSnapshotRequest) -> FetchSnapshotRequest.PartitionSnapshot | None:
    if len(request.topics) != 1 or request.topics[0].name != METADATA_TOPIC:
        return None
    partitions = request.topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition == 0 else None


def fetch_refused(code: ErrorCode) -> FetchResponse:
    """A response with an error for the whole request."""
    return FetchResponse(error_code=code, responses=[])


def fetch_answer(
    leadership: LeaderAndEpoch,
    *,
    error: ErrorCode = ErrorCode.NONE,
    high_watermark: int = -1,
    log_start_offset: int = -1,
    records: list[Region] | None = None,
    diverging: FetchResponse.EpochEndOffset | None = None,
    snapshot_id: FetchResponse.SnapshotId | None = None,
) -> FetchResponse:
    partition = FetchResponse.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=leadership.leader_id, leader_epoch=leadership.epoch),
        aborted_transactions=[],
        records=[*records] if records else [],
    )
    if diverging is not None:
        partition.diverging_epoch = diverging
    if snapshot_id is not None:
        partition.snapshot_id = snapshot_id
    topic = FetchResponse.FetchableTopicResponse(
        topic_id=METADATA_TOPIC_ID, topic=METADATA_TOPIC, partitions=[partition]
    )
    return FetchResponse(responses=[topic], node_endpoints=_fetch_endpoints(leadership))


def _fetch_endpoints(leadership: LeaderAndEpoch) -> list[FetchResponse.NodeEndpoint]:
    if leadership.endpoint is None:
        return []
    return [
        FetchResponse.NodeEndpoint(
            node_id=leadership.leader_id, host=leadership.endpoint.host, port=leadership.endpoint.port
        )
    ]


def snapshot_refused(code: ErrorCode) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=code, topics=[])


def snapshot_of_another(request: FetchSnapshotRequest) -> FetchSnapshotResponse:
    """The answer to a request that `metadata_snapshot` does not accept."""
    partitions = [(topic.name, one) for topic in request.topics for one in topic.partitions]
    if len(partitions) != 1:
        return snapshot_refused(ErrorCode.INVALID_REQUEST)
    nested, (name, asked) = FetchSnapshotResponse, partitions[0]
    unknown = nested.PartitionSnapshot(index=asked.partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return nested(topics=[nested.TopicSnapshot(name=name, partitions=[unknown])])


def snapshot_answer(
    leadership: LeaderAndEpoch,
    snapshot_id: SnapshotId,
    *,
    error: ErrorCode = ErrorCode.NONE,
    size: int = 0,
    position: int = 0,
    records: list[Region] | None = None,
) -> FetchSnapshotResponse:
    nested = FetchSnapshotResponse
    partition = nested.PartitionSnapshot(
        index=0,
        error_code=error,
        snapshot_id=nested.SnapshotId(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch),
        current_leader=nested.LeaderIdAndEpoch(leader_id=leadership.leader_id, leader_epoch=leadership.epoch),
        size=size,
        position=position,
        unaligned_records=[*records] if records else [],
    )
    endpoints = []
    if leadership.endpoint is not None:
        host, port = leadership.endpoint.host, leadership.endpoint.port
        endpoints.append(nested.NodeEndpoint(node_id=leadership.leader_id, host=host, port=port))
    topic = nested.TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    return FetchSnapshotResponse(topics=[topic], node_endpoints=endpoints)
