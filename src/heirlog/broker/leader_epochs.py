"""OffsetForLeaderEpoch: where a leader epoch ends in this leader's log (KIP-101; KIP-320 for consumers).

The answer is that of `Log.end_offset_for_epoch`, for followers and consumers alike.

Trap: the answer is not limited to the high watermark. A new leader's high watermark may be below the one that its
predecessor exposed. A consumer beyond it would take a limited answer for a truncation, and reset its position.
"""

from __future__ import annotations

from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import (
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
                answer = end_of(partition, asked.leader_epoch, asked.current_leader_epoch)
            except KafkaError as error:
                answer = _Answer(error_code=error.code)
            answer.partition = asked.partition
            answers.append(answer)
        topics.append(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def end_of(partition: Partition, leader_epoch: int, current_leader_epoch: int) -> _Answer:
    """The end offset of the epoch. Raises KafkaError: not the leader, or another leader epoch."""
    if partition.role is not ReplicaRole.LEADER:
        raise partition.not_leader()
    partition.check_leader_epoch(current_leader_epoch)
    epoch, end_offset = partition.log.end_offset_for_epoch(leader_epoch)
    return _Answer(leader_epoch=epoch, end_offset=end_offset)
