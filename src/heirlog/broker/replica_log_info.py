"""GetReplicaLogInfo: the state of this broker's logs, for a controller that must elect a leader without a clean
candidate.

Per partition two leader epochs, which must not be confused:

    last written     read from the log: the epoch of its last record. It ranks the log: records of a later leader beat a
                     longer log of an earlier one. An epoch that only *began* in the log does not count, since its
                     leader may have written nothing
    current          from the metadata that this partition has applied. The controller accepts an answer only with the
                     newest epoch: in it this replica neither fetches nor appends, so the answer stays true

A log that retention or DeleteRecords has emptied has no last record. Its newest known epoch is used instead. Otherwise
a replica that deleted its old records would lose the election to one that lags behind.

A request may name any number of partitions. The first 1000 are answered; the others get REQUEST_LIMIT_REACHED, and the
controller asks for them again.

Source: KIP-966, "GetReplicaLogInfo".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from heirlog.protocol.types import Uuid
from heirlog.storage.log import Log

PARTITIONS_MAX: Final = 1000
"""KIP-966: how many partitions one answer holds."""

Topic = GetReplicaLogInfoResponse.TopicPartitionLogInfo
Info = GetReplicaLogInfoResponse.PartitionLogInfo


def replica_log_info(
    replicas: ReplicaManager, registered_brokers: RegisteredBrokers, request: GetReplicaLogInfoRequest
) -> GetReplicaLogInfoResponse:
    """Answers in the order asked."""
    refusal = None
    if request.broker_id != registered_brokers.broker_id:
        refusal = (
            f"this is broker {registered_brokers.broker_id}, broker {request.broker_id} was asked; look up its address"
        )
    left = PARTITIONS_MAX
    topics = []
    for asked in request.topic_partitions or ():
        answered = list(_answers(replicas, Uuid(asked.topic_id), asked.partitions, left, refusal))
        left -= len(answered)
        topics.append(Topic(topic_id=asked.topic_id, partition_log_info=answered))
    return GetReplicaLogInfoResponse(broker_epoch=registered_brokers.broker_epoch, topic_partition_log_info_list=topics)


def refused(request: GetReplicaLogInfoRequest, code: ErrorCode, sentence: str) -> GetReplicaLogInfoResponse:
    """The same error for each of the first 1000 partitions; the response has no error of its own."""
    left = PARTITIONS_MAX
    topics = []
    for asked in request.topic_partitions or ():
        indexes = asked.partitions[:left]
        left -= len(indexes)
        infos = [Info(partition=index, error_code=code, error_message=sentence) for index in indexes]
        topics.append(Topic(topic_id=asked.topic_id, partition_log_info=infos))
    return GetReplicaLogInfoResponse(topic_partition_log_info_list=topics)


def last_written_epoch(log: Log) -> int:
    """The leader epoch of the log's last record, -1 if there never was one: see the top of the module."""
    if log.log_end_offset == log.log_start_offset:
        return log.epochs.latest if log.log_end_offset else -1
    return log.epochs.epoch_for_offset(log.log_end_offset - 1)


def _answers(
    replicas: ReplicaManager, topic_id: Uuid, indexes: list[int], room: int, refusal: str | None
) -> Iterator[GetReplicaLogInfoResponse.PartitionLogInfo]:
    here = replicas.partitions_of(topic_id)
    for position, index in enumerate(indexes):
        if position >= room:
            yield Info(
                partition=index,
                error_code=ErrorCode.REQUEST_LIMIT_REACHED,
                error_message=f"one answer holds {PARTITIONS_MAX} partitions; request the others separately",
            )
        elif refusal is not None:
            yield Info(partition=index, error_code=ErrorCode.INVALID_REQUEST, error_message=refusal)
        else:
            yield _answer(replicas, here.get(index), topic_id, index)


def _answer(
    replicas: ReplicaManager, partition: Partition | None, topic_id: Uuid, index: int
) -> GetReplicaLogInfoResponse.PartitionLogInfo:
    if partition is None:
        error = replicas.no_partition(topic_id, index)
        return Info(partition=index, error_code=error.code, error_message=error.message)
    if partition.offline:
        sentence = f"the log directory of {partition.topic}-{index} is offline"
        return Info(partition=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=sentence)
    return Info(
        partition=index,
        last_written_leader_epoch=last_written_epoch(partition.log),
        current_leader_epoch=partition.leader_epoch,
        log_end_offset=partition.log.log_end_offset,
        may_lack_records=partition.log.may_lack_records,
        error_message=None,
    )
