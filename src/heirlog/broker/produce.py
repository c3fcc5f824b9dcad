"""Produce: append to the partitions that this broker leads, and with acks=all wait for the high watermark.

    acks  0   append; no answer. A failure closes the connection: the producer has no other way to learn of it
          1   append, answer; even below min ISR
         -1   refused before the append if the committed ISR is below the effective min ISR (NOT_ENOUGH_REPLICAS);
              else append and wait until the high watermark has reached the end of the records. Then success, or
              NOT_ENOUGH_REPLICAS_AFTER_APPEND if the ISR has shrunk meanwhile; REQUEST_TIMED_OUT after `timeout`;
              NOT_LEADER_OR_FOLLOWER when leadership is lost
    others   INVALID_REQUIRED_ACKS for every partition

One predicate, `partition.is_committed`, decides whether a request has to wait and when its wait ends.

The same rule applies to a repeated batch of an idempotent producer, since clients count the answer as success. A repeat
whose original is known waits for the original's offset. DUPLICATE_SEQUENCE_NUMBER, for a batch whose offset is
forgotten, waits for the log end at the time of the request. Otherwise a new leader would confirm records that its high
watermark has not reached yet, and that the next election may lose.

Each partition of a request is independent of the others. Followers that wait for records are woken once, after all
requests of this turn of the event loop, so that one fetch carries all records.

Trap: a failed batch must leave nothing in the log that the high watermark could expose. So `Log.append_as_leader`
validates all batches of a partition before it writes any.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from heirlog.broker.partition import ALL_IN_SYNC, Partition
from heirlog.broker.purgatory import Purgatory
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.replication_wait import ReplicationWait
from heirlog.broker.transactional_produce import NOTHING_CHECKED, TOPIC_ID_VERSION, Checked
from heirlog.context import CLOSE, NO_ANSWER, Context
from heirlog.env import Env
from heirlog.metadata.topic_name import INTERNAL_TOPICS
from heirlog.pending import Pending
from heirlog.protocol.batch import COMPRESSION_MASK, HEADER_SIZE
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import ProduceRequest, ProduceResponse
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import PartitionKey
from heirlog.storage.errors import InvalidRecords
from heirlog.storage.verification import VerificationGuard

NO_RESPONSE_WANTED = 0
LEADER_ONLY = 1
_ACKS = (NO_RESPONSE_WANTED, LEADER_ONLY, ALL_IN_SYNC)
ADMIN_CLIENT = "__admin_client"
"""The client id that may write coordinators' topics, as on Apache Kafka."""
_BEFORE_THE_LOG = (
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_RECORD,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
"""With these errors Apache Kafka's response has no log start offset."""
_CURRENT_LEADER_VERSION = 10
_ZSTD_VERSION, _ZSTD, _ATTRIBUTES_AT = 7, 4, 22

_Answer: TypeAlias = ProduceResponse.PartitionProduceResponse
_RecordError: TypeAlias = ProduceResponse.BatchIndexAndErrorMessage


def _fail(answer: _Answer, code: ErrorCode) -> None:
    answer.error_code = code
    answer.error_message = None
    answer.base_offset = -1
    answer.log_append_time_ms = -1


def _check(partition: Partition, acks: int, context: Context) -> None:
    """Raises KafkaError: clients may not write to this partition, or not in this way."""
    if acks not in _ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is none of -1, 0, 1")
    if partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is written by coordinators only")


def _check_codec(records: Any, version: int) -> None:
    """Raises KafkaError: zstd came with version 7 (KIP-110)."""
    if version < _ZSTD_VERSION and len(records) >= HEADER_SIZE and records[_ATTRIBUTES_AT] & COMPRESSION_MASK == _ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce v{version} carries no zstd; use v7 or later")


class _Done:
    """The results of a request, by partition."""

    __slots__ = ("appended_to", "failed", "now_ms", "waits", "wall_ms")

    def __init__(self, now_ms: int, wall_ms: int) -> None:
        self.now_ms = now_ms
        self.wall_ms = wall_ms
        self.appended_to: list[tuple[Partition, int]] = []
        """Partitions with their high watermarks before the append."""
        self.waits: list[tuple[Partition, int, _Answer]] = []
        """Partitions with the offset that the high watermark must reach."""
        self.failed = False


class ProduceHandler:
    def __init__(self, env: Env, replicas: ReplicaManager) -> None:
        self._env = env
        self._replicas = replicas
        self._waiting: Purgatory[PartitionKey] = replicas.delayed.produce

    def produce(self, request: ProduceRequest, context: Context, checked: Checked = NOTHING_CHECKED) -> Any:
        """Returns a response, `Pending` for acks=all, NO_ANSWER for acks=0, or CLOSE for acks=0 with an error.

        checked: what is known of the transactions of the request (`transactional_produce.py`).
        """
        by_id = context.api_version >= TOPIC_ID_VERSION
        done = _Done(self._env.now_ms(), self._env.wall_ms())
        topics = []
        # a topic without partitions has no answer, as on Apache Kafka
        for topic in filter(lambda each: each.partition_data, request.topic_data):
            partitions = (
                self._replicas.partitions_of(topic.topic_id) if by_id else self._replicas.partitions_named(topic.name)
            )
            answers = [
                self._append(partitions.get(data.index), topic, data, request.acks, context, done, checked)
                for data in topic.partition_data
            ]
            topics.append(
                ProduceResponse.TopicProduceResponse(
                    topic_id=topic.topic_id, name=topic.name, partition_responses=answers
                )
            )
        response = ProduceResponse(responses=topics)
        result: Any
        if done.waits:
            result = self._wait(response, done.waits, context, request.timeout_ms, look_first=done.failed)
        elif request.acks == NO_RESPONSE_WANTED:
            result = CLOSE if done.failed else NO_ANSWER
        else:
            if done.failed:
                self.name_leaders(response, context)
            result = response
        for partition, watermark in done.appended_to:
            self._replicas.log_grew(partition, watermark, done.wall_ms)
        return result

    def _append(
        self,
        partition: Partition | None,
        topic: Any,
        data: Any,
        acks: int,
        context: Context,
        done: _Done,
        checked: Checked,
    ) -> _Answer:
        """Handle one partition of a request."""
        answer = _Answer(index=data.index)
        records = records_view(data.records)
        guard: VerificationGuard | KafkaError | None = None
        try:
            if partition is None:
                name = topic.topic_id if context.api_version >= TOPIC_ID_VERSION else topic.name
                raise self._replicas.no_partition(name, data.index)
            _check(partition, acks, context)
            _check_codec(records, context.api_version)
            guard = checked.get((partition.topic, data.index)) if checked else None
            if isinstance(guard, KafkaError):
                raise guard
            partition.topic_metrics.produces += 1
            watermark = partition.high_watermark
            appended = partition.append(
                bytearray(records) if records.readonly else records, acks, done.wall_ms, done.now_ms, guard
            )
        except KafkaError as error:
            done.failed = True
            self._refused(answer, error, topic, data.index, context)
            if partition is not None:
                if error is not guard and (error.code not in _BEFORE_THE_LOG or isinstance(error, InvalidRecords)):
                    answer.log_start_offset = partition.log.log_start_offset
                partition.topic_metrics.produce_failed(error.code, len(records))
                if error.code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                    self._wait_for(partition, partition.log.log_end_offset, acks, answer, done)
            return answer
        except OSError as error:
            assert partition is not None
            done.failed = True
            self._replicas.storage_failed(partition, error)
            self._refused(answer, partition.not_leader(), topic, data.index, context)
            return answer
        answer.base_offset = appended.first_offset
        answer.log_append_time_ms = appended.append_time_ms
        answer.log_start_offset = appended.log_start_offset
        if not appended.duplicate:
            done.appended_to.append((partition, watermark))
        self._wait_for(partition, appended.last_offset + 1, acks, answer, done)
        return answer

    @staticmethod
    def _wait_for(partition: Partition, required_offset: int, acks: int, answer: _Answer, done: _Done) -> None:
        """acks=all: `answer` counts once the high watermark has reached `required_offset`."""
        if acks == ALL_IN_SYNC and not partition.has_committed(required_offset):
            done.waits.append((partition, required_offset, answer))

    def _refused(self, answer: _Answer, error: KafkaError, topic: Any, index: int, context: Context) -> None:
        _fail(answer, error.code)
        answer.error_message = error.message
        if isinstance(error, InvalidRecords):
            answer.record_errors = [_RecordError(batch_index=i, batch_index_error_message=None) for i in error.indexes]
        self._env.log(
            "debug",
            "produce-refused",
            error=error.code.name,
            topic=topic.name,
            partition=index,
            client=context.client_id,
        )

    def _wait(
        self,
        response: ProduceResponse,
        waits: list[tuple[Partition, int, _Answer]],
        context: Context,
        timeout_ms: int,
        look_first: bool,
    ) -> Any:
        """`look_first`: see `ReplicationWait.begin`."""
        pending: Pending[Any] = Pending(lambda: self._waiting.remove(wait))

        def finish() -> None:
            self.name_leaders(response, context)
            pending.complete(response)

        wait: ReplicationWait[_Answer] = ReplicationWait(_fail, finish)
        for partition, required_offset, answer in waits:
            wait.add(partition, required_offset, answer)
        wait.begin(self._waiting, timeout_ms, look_first=look_first)
        return pending

    def name_leaders(self, response: ProduceResponse, context: Context) -> None:
        """Name the leader to a client that sent its request to the wrong broker (KIP-951, v10)."""
        if context.api_version < _CURRENT_LEADER_VERSION:
            return
        leaders: set[int] = set()
        for topic in response.responses:
            for answer in topic.partition_responses:
                if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    continue
                state = self._replicas.state_of(topic.topic_id, topic.name, answer.index)
                if state is None:
                    continue
                answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                    leader_id=state.leader, leader_epoch=state.leader_epoch
                )
                leaders.add(state.leader)
        if not leaders:
            return
        response.node_endpoints = [
            ProduceResponse.NodeEndpoint(node_id=node.id, host=endpoint.host, port=endpoint.port, rack=node.rack)
            for node, endpoint in self._replicas.endpoints_of(sorted(leaders), context.listener)
        ]
