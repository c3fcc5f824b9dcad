"""DescribeQuorum (KIP-595; v1 KIP-836 times, v2 KIP-853 directories and listeners): the state of voters and observers.

Only the leader answers; other nodes return NOT_LEADER_OR_FOLLOWER. A request for anything but partition 0 of the
metadata topic gets an error for each partition, as on Apache Kafka. Trap: the voters must include the leader itself
with its real end offset, or Kafka's own tool crashes.
"""

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from heirlog.protocol.types import METADATA_TOPIC
from heirlog.raft.answers import LeaderAndEpoch
from heirlog.raft.control import Voter
from heirlog.raft.replica_states import ReplicaState, ReplicaStates

Answer = DescribeQuorumResponse


def asks_for_metadata(request: DescribeQuorumRequest) -> bool:
    topics = request.topics
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return False
    return [partition.partition_index for partition in topics[0].partitions] == [0]


def unknown(request: DescribeQuorumRequest) -> Answer:
    """An error for each partition of a request that names other partitions than the metadata's, or none."""
    return Answer(
        error_message="",
        topics=[
            Answer.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    Answer.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=f"only partition 0 of {METADATA_TOPIC} has a quorum; ask for it alone",
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def not_leader(leadership: LeaderAndEpoch) -> Answer:
    partition = Answer.PartitionData(
        partition_index=0,
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        error_message="this node does not lead the metadata quorum",
        leader_id=leadership.leader_id,
        leader_epoch=leadership.epoch,
        high_watermark=-1,
    )
    return Answer(error_message="", topics=[Answer.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])])


def described(
    leadership: LeaderAndEpoch,
    voters: Sequence[Voter],
    progress: ReplicaStates,
    high_watermark: int,
    end_offset: int,
    wall_ms: int,
) -> Answer:
    """`end_offset` is the leader's own."""
    leader = ReplicaState(end_offset, wall_ms, wall_ms)
    states = [
        _state(v.id, v.directory_id, leader if v.id == leadership.leader_id else progress.of_voter(v)) for v in voters
    ]
    observers = [_state(key.id, key.directory_id, p) for key, p in progress.observers(voters, wall_ms)]
    partition = Answer.PartitionData(
        partition_index=0,
        error_message="",
        leader_id=leadership.leader_id,
        leader_epoch=leadership.epoch,
        high_watermark=high_watermark,
        current_voters=states,
        observers=observers,
    )
    return Answer(
        error_message="",
        topics=[Answer.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[_node(v) for v in voters],
    )


def _state(replica_id: int, directory_id: bytes, progress: ReplicaState) -> Answer.ReplicaState:
    return Answer.ReplicaState(
        replica_id=replica_id,
        replica_directory_id=directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=progress.last_fetch_ms,
        last_caught_up_timestamp=progress.last_caught_up_ms,
    )


def _node(voter: Voter) -> Answer.Node:
    listener = Answer.Listener(name=voter.listener, host=voter.endpoint.host, port=voter.endpoint.port)
    return Answer.Node(node_id=voter.id, listeners=[listener])
