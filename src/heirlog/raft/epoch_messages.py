"""Vote, BeginQuorumEpoch and EndQuorumEpoch: what their requests and answers look like.

All three concern one partition, `__cluster_metadata-0`, and every answer names the leader and the epoch that the
answering node knows, with the leader's endpoint. The rules are in `epoch_state` and `quorum`.

Source: KIP-595; KIP-853 for keys and endpoints (Vote 1, BeginQuorumEpoch 1, EndQuorumEpoch 1); KIP-996 (Vote 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from heirlog.protocol.types import METADATA_TOPIC, Endpoint
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.control import Voter
from heirlog.raft.divergence import Position
from heirlog.raft.quorum_state import NOBODY
from heirlog.raft.replica_key import ReplicaKey

EpochRequest: TypeAlias = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
EpochResponse: TypeAlias = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse

CHANNEL = "vote"
"""A connection of its own: these requests must not wait behind a Fetch that waits for records."""


class Heard(NamedTuple):
    """What an answer says about the quorum."""

    error: ErrorCode
    leadership: LeaderAndEpoch
    granted: bool = False
    """Of a Vote."""


# requests


def vote_request(
    cluster_id: str, me: ReplicaKey, voter: ReplicaKey, epoch: int, end: Position, pre_vote: bool
) -> VoteRequest:
    """epoch: that of the candidacy; of a pre-vote the epoch that the node is in. end: of the candidate's log."""
    partition = VoteRequest.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=me.id,
        replica_directory_id=me.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=end.epoch,
        last_offset=end.offset,
        pre_vote=pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=[topic])


def begin_request(cluster_id: str, leader: Voter, voter: ReplicaKey, epoch: int) -> BeginQuorumEpochRequest:
    nested = BeginQuorumEpochRequest
    partition = nested.PartitionData(
        partition_index=0, voter_directory_id=voter.directory_id, leader_id=leader.id, leader_epoch=epoch
    )
    endpoint = nested.LeaderEndpoint(name=leader.listener, host=leader.endpoint.host, port=leader.endpoint.port)
    return nested(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[nested.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[endpoint],
    )


def end_request(cluster_id: str, leader: Voter, epoch: int, successors: Sequence[ReplicaKey]) -> EndQuorumEpochRequest:
    """successors: the other voters, the one with the longest log first."""
    nested = EndQuorumEpochRequest
    partition = nested.PartitionData(
        partition_index=0,
        leader_id=leader.id,
        leader_epoch=epoch,
        preferred_candidates=[
            nested.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id) for key in successors
        ],
        preferred_successors=[key.id for key in successors],
    )
    endpoint = nested.LeaderEndpoint(name=leader.listener, host=leader.endpoint.host, port=leader.endpoint.port)
    return nested(
        cluster_id=cluster_id,
        topics=[nested.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[endpoint],
    )


def vote_partition(request: VoteRequest) -> VoteRequest.PartitionData | None:
    """The metadata partition; None if the request names anything else. So are the two below."""
    found: VoteRequest.PartitionData | None = _only_partition(request.topics)
    return found


def begin_partition(request: BeginQuorumEpochRequest) -> BeginQuorumEpochRequest.PartitionData | None:
    found: BeginQuorumEpochRequest.PartitionData | None = _only_partition(request.topics)
    return found


def end_partition(request: EndQuorumEpochRequest) -> EndQuorumEpochRequest.PartitionData | None:
    found: EndQuorumEpochRequest.PartitionData | None = _only_partition(request.topics)
    return found


def _only_partition(topics: Sequence[Any]) -> Any:
    """The three requests have topics of the same shape, in classes of their own."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    return partition if partition.partition_index == 0 else None


def leader_endpoint(request: BeginQuorumEpochRequest | EndQuorumEpochRequest) -> Endpoint | None:
    """Where the leader says that it listens; None below version 1."""
    for endpoint in request.leader_endpoints:
        return Endpoint(endpoint.host, endpoint.port)
    return None


# answers


def vote_answer(leadership: LeaderAndEpoch, error: ErrorCode = ErrorCode.NONE, granted: bool = False) -> VoteResponse:
    answer: VoteResponse = _answer(VoteResponse, leadership, error, vote_granted=granted)
    return answer


def begin_answer(leadership: LeaderAndEpoch, error: ErrorCode = ErrorCode.NONE) -> BeginQuorumEpochResponse:
    answer: BeginQuorumEpochResponse = _answer(BeginQuorumEpochResponse, leadership, error)
    return answer


def end_answer(leadership: LeaderAndEpoch, error: ErrorCode = ErrorCode.NONE) -> EndQuorumEpochResponse:
    answer: EndQuorumEpochResponse = _answer(EndQuorumEpochResponse, leadership, error)
    return answer


def _answer(nested: Any, leadership: LeaderAndEpoch, error: ErrorCode, **of_partition: Any) -> Any:
    """The three answers have members of the same names, in classes of their own."""
    partition = nested.PartitionData(
        partition_index=0,
        error_code=error,
        leader_id=leadership.leader_id,
        leader_epoch=leadership.epoch,
        **of_partition,
    )
    known = leadership.endpoint if leadership.leader_id != NOBODY else None
    endpoints = []
    if known is not None:
        endpoints.append(nested.NodeEndpoint(node_id=leadership.leader_id, host=known.host, port=known.port))
    return nested(
        topics=[nested.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])], node_endpoints=endpoints
    )


def heard(response: EpochResponse) -> Heard | None:
    """What the answer says; None if it is refused as a whole, or does not name the metadata partition."""
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return None
    partition = response.topics[0].partitions[0]
    endpoint = next(
        (Endpoint(node.host, node.port) for node in response.node_endpoints if node.node_id == partition.leader_id),
        None,
    )
    granted = partition.vote_granted if isinstance(partition, VoteResponse.PartitionData) else False
    leadership = LeaderAndEpoch(partition.leader_id, partition.leader_epoch, endpoint)
    return Heard(ErrorCode(partition.error_code), leadership, granted)
