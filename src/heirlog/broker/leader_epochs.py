"""OffsetForLeaderEpoch: where a leader epoch ends in this leader's log (KIP-101; KIP-320 for consumers).

The answer is that of `Log.end_offset_for_epoch` (kafka-behaviour 4.5); for the leader's own epoch a follower gets the
log's end, a consumer the high watermark, as it must not learn of records that it may not read.
"""

from __future__ import annotations

from heirlog.broker.partition import Partition, Role
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

_Answer = OffsetForLeaderEpochResponse.EpochEndOffset


def offset_for_leader_epoch(
    replicas: ReplicaManager, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    topics = []
    for topic in request.topics:
        partitions = replicas.partitions_named(topic.topic)
        answers = []
        for asked in topic.partitions:
            partition = partitions.get(asked.partition)
            try:
                if partition is None:
                    raise replicas.no_partition(topic.topic, asked.partition)
                answer = end_of(partition, asked.leader_epoch, asked.current_leader_epoch, request.replica_id >= 0)
            except KafkaError as error:
                answer = _Answer(error_code=error.code)
            answer.partition = asked.partition
            answers.append(answer)
        topics.append(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def end_of(partition: Partition, leader_epoch: int, current_leader_epoch: int, for_follower: bool) -> _Answer:
    """Raises KafkaError: not the leader, or another leader epoch."""
    if partition.role is not Role.LEADER:
        raise partition.not_leader()
    partition.check_leader_epoch(current_leader_epoch)
    epoch, end_offset = partition.log.end_offset_for_epoch(leader_epoch)
    if not for_follower:
        end_offset = min(end_offset, partition.high_watermark)
    return _Answer(leader_epoch=epoch, end_offset=end_offset)
