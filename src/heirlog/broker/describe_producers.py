"""DescribeProducers: the producers that a partition remembers, and their open transactions.

Any replica answers, because each of them has the producers' state. If only the epoch of a producer is known, its last
sequence is -1; without a marker in the log its coordinator epoch is -1, without an open transaction its start offset.

Source: KIP-664.
"""

from __future__ import annotations

from heirlog.broker.replica_manager import ReplicaManager
from heirlog.metadata.topic_name import topic_name_error
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

NO_SEQUENCE = -1


def describe_producers(replicas: ReplicaManager, request: DescribeProducersRequest) -> DescribeProducersResponse:
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=name,
                partitions=[_describe(replicas, name, index) for index in indexes],
            )
            for name, indexes in asked.items()
        ]
    )


def _describe(replicas: ReplicaManager, topic: str, index: int) -> DescribeProducersResponse.PartitionResponse:
    answer = DescribeProducersResponse.PartitionResponse(partition_index=index)
    partition = replicas.partitions_named(topic).get(index)
    malformed = topic_name_error(topic)
    if malformed is not None:
        answer.error_code, answer.error_message = ErrorCode.INVALID_TOPIC_EXCEPTION, malformed
    elif partition is None:
        error = replicas.no_partition(topic, index)
        answer.error_code, answer.error_message = error.code, error.message
    elif partition.offline:
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        answer.error_message = f"the disk of {topic}-{index} has failed"
    else:
        answer.active_producers = [
            DescribeProducersResponse.ProducerState(
                producer_id=producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.batches[-1].last_sequence if state.batches else NO_SEQUENCE,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.transaction_start,
            )
            for producer_id, state in sorted(partition.log.producers.producers.items())
        ]
    return answer
