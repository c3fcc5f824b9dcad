"""DeleteRecords: the log start of a partition moves up, on its leader and then on its followers.

    leader      log start := the requested offset (-1: the high watermark). Records below it can no longer be read; the
                next retention pass deletes their segments
    followers   take over the leader's log start from a fetch response, and report theirs with the next fetch
    answer      once the low watermark has reached the requested offset. The low watermark is the lowest log start among
                the leader and those followers that are registered and not fenced, in sync or not: none of them will
                serve the deleted records

Refused: an offset above the high watermark or below -1 (OFFSET_OUT_OF_RANGE), a topic whose cleanup.policy deletes
nothing (POLICY_VIOLATION), a coordinator's topic (INVALID_TOPIC_EXCEPTION). An offset below the log start succeeds and
moves nothing.

Trap: a follower that has not fetched in this leader epoch has reported no log start. It counts as -1, so the answer
waits for it. After the timeout the answer is REQUEST_TIMED_OUT, although the leader has deleted the records for good.

Source: KIP-107.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from heirlog.broker.followers import RegisteredBrokers
from heirlog.broker.partition import Partition, ReplicaRole
from heirlog.broker.purgatory import Purgatory
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.metadata.topic_name import INTERNAL_TOPICS
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from heirlog.protocol.types import PartitionKey

UPTO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1

_Answer: TypeAlias = DeleteRecordsResponse.DeleteRecordsPartitionResult


class _LowWatermarkWait:
    """A request, with the partitions whose low watermark has not reached the requested offset yet."""

    __slots__ = ("_left", "_registered_brokers", "_response", "number", "pending")

    def __init__(
        self,
        registered_brokers: RegisteredBrokers,
        response: DeleteRecordsResponse,
        waits: Purgatory[PartitionKey],
    ) -> None:
        self.number = -1
        self.pending: Pending[DeleteRecordsResponse] = Pending(partial(waits.remove, self))
        self._registered_brokers = registered_brokers
        self._response = response
        self._left: dict[PartitionKey, list[tuple[Partition, int, _Answer]]] = {}

    def add(self, partition: Partition, offset: int, answer: _Answer) -> None:
        self._left.setdefault(partition.key, []).append((partition, offset, answer))

    @property
    def keys(self) -> tuple[PartitionKey, ...]:
        return tuple(self._left)

    def try_complete(self, key: PartitionKey) -> bool:
        left = [entry for entry in self._left.get(key, ()) if not self._settled(*entry)]
        if left:
            self._left[key] = left
            return False
        self._left.pop(key, None)
        if self._left:
            return False
        self.pending.complete(self._response)
        return True

    def _settled(self, partition: Partition, offset: int, answer: _Answer) -> bool:
        if partition.role is not ReplicaRole.LEADER:
            answer.error_code = partition.not_leader().code
            answer.low_watermark = NO_LOW_WATERMARK
            return True
        answer.low_watermark = low_watermark(partition, self._registered_brokers)
        return answer.low_watermark >= offset

    def on_expiration(self) -> None:
        for waiting in self._left.values():
            for _, _, answer in waiting:
                answer.error_code = ErrorCode.REQUEST_TIMED_OUT
        self.pending.complete(self._response)


class DeleteRecordsHandler:
    def __init__(self, replicas: ReplicaManager, registered_brokers: RegisteredBrokers) -> None:
        self._replicas = replicas
        self._registered_brokers = registered_brokers

    def delete_records(self, request: DeleteRecordsRequest) -> Any:
        """Returns a response, or `Pending` while followers still have older records."""
        response = DeleteRecordsResponse()
        waits = self._replicas.delayed.delete_records
        wait = _LowWatermarkWait(self._registered_brokers, response, waits)
        # for a partition that is named twice the last item wins, as on Apache Kafka
        cuts: dict[str, dict[int, DeleteRecordsRequest.DeleteRecordsPartition]] = {}
        for topic in request.topics:
            cuts.setdefault(topic.name, {}).update((asked.partition_index, asked) for asked in topic.partitions)
        for name, partitions in cuts.items():
            if not partitions:
                continue
            answers = [self._answer(name, asked, wait) for asked in partitions.values()]
            response.topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(name=name, partitions=answers))
        if not wait.keys:
            return response
        if request.timeout_ms <= 0 or waits.is_full:
            wait.on_expiration()
        else:
            waits.watch(wait, request.timeout_ms)
        return wait.pending

    def _answer(
        self, topic: str, asked: DeleteRecordsRequest.DeleteRecordsPartition, wait: _LowWatermarkWait
    ) -> _Answer:
        answer = _Answer(partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK)
        partition = self._replicas.partitions_named(topic).get(asked.partition_index)
        try:
            if topic in INTERNAL_TOPICS:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by coordinators only")
            if partition is None:
                raise self._replicas.no_partition(topic, asked.partition_index)
            offset = delete_on_leader(partition, asked.offset)
        except KafkaError as error:
            answer.error_code = error.code
        except OSError as error:
            assert partition is not None
            self._replicas.storage_failed(partition, error)
            answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            answer.low_watermark = low_watermark(partition, self._registered_brokers)
            if answer.low_watermark < offset:
                wait.add(partition, offset, answer)
        return answer


def delete_on_leader(partition: Partition, offset: int) -> int:
    """Move the log start; returns the offset that the low watermark has to reach. Raises KafkaError, OSError."""
    if partition.role is not ReplicaRole.LEADER:
        raise partition.not_leader()
    name = f"{partition.topic}-{partition.index}"
    if not partition.log.config.delete_enabled:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {name} cannot be deleted: its cleanup.policy does not include delete",
        )
    upto = partition.high_watermark if offset == UPTO_HIGH_WATERMARK else offset
    if upto < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the offset {upto} for partition {name} is not valid")
    if upto > partition.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log start of {name} cannot move to {upto}, above its high watermark {partition.high_watermark}",
        )
    partition.log.increment_log_start(upto)
    return upto


def low_watermark(partition: Partition, registered_brokers: RegisteredBrokers) -> int:
    """The lowest log start among the leader and its followers that are registered and unfenced."""
    lowest = partition.log.log_start_offset
    for broker_id, follower in partition.followers.items():
        known = registered_brokers.brokers.get(broker_id)
        if known is not None and not known.fenced and follower.log_start_offset < lowest:
            lowest = follower.log_start_offset
    return lowest
