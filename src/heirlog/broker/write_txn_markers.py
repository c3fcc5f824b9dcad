"""WriteTxnMarkers: coordinators end transactions in the partitions that this broker leads.

    partition of a topic              appended with acks=all, answered once the marker is committed
    partition of __consumer_offsets   written by its group coordinator, answered once it has also taken over the offsets
                                      that the transaction commits: the next reader of the group must see them

A marker that arrives again is appended again: it finds no open transaction and changes nothing. What the log refuses
(`storage/producers.py`) is answered per partition; the transaction coordinator decides what to try again.

Source: KIP-98, KIP-1228; KAFKA-17507 for the order of marker and offsets.
"""

from __future__ import annotations

from typing import TypeAlias

from heirlog.broker.groups.coordinator import GroupCoordinator
from heirlog.broker.partition import Partition
from heirlog.broker.replica_manager import ReplicaManager
from heirlog.broker.replication_wait import ReplicationWait
from heirlog.env import Env
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from heirlog.protocol.transaction_marker import TransactionMarker

_Marker: TypeAlias = WriteTxnMarkersRequest.WritableTxnMarker
_Result: TypeAlias = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class _Writing:
    """A request whose markers are being written: its response leaves when nothing of it is open any more."""

    def __init__(self) -> None:
        self.pending: Pending[WriteTxnMarkersResponse] = Pending()
        self.appended: list[tuple[Partition, int, int, _Result]] = []
        """Partitions with the high watermark before and the offset after the marker."""
        self._results: dict[int, dict[str, dict[int, _Result]]] = {}
        self._open = 1

    def result_of(self, producer_id: int, topic: str, index: int) -> _Result:
        """A producer has one result for each partition, also if it is named twice."""
        by_index = self._results.setdefault(producer_id, {}).setdefault(topic, {})
        return by_index.setdefault(index, _Result(partition_index=index))

    def opened(self) -> None:
        """One more has to be done."""
        self._open += 1

    def done(self) -> None:
        self._open -= 1
        if not self._open:
            self.pending.complete(self._response())

    def _response(self) -> WriteTxnMarkersResponse:
        answered = WriteTxnMarkersResponse
        return answered(
            markers=[
                answered.WritableTxnMarkerResult(
                    producer_id=producer_id,
                    topics=[
                        answered.WritableTxnMarkerTopicResult(name=topic, partitions=list(by_index.values()))
                        for topic, by_index in topics.items()
                    ],
                )
                for producer_id, topics in self._results.items()
            ]
        )


class WriteTxnMarkersHandler:
    def __init__(self, env: Env, replicas: ReplicaManager, groups: GroupCoordinator, timeout_ms: int) -> None:
        """timeout_ms: how long an answer waits for the commit of its markers."""
        self._env = env
        self._replicas = replicas
        self._groups = groups
        self._timeout_ms = timeout_ms

    def write_txn_markers(self, request: WriteTxnMarkersRequest) -> Pending[WriteTxnMarkersResponse]:
        writing = _Writing()
        for marker in request.markers:
            self._write(marker, writing)
        waits = [entry for entry in writing.appended if not entry[0].has_committed(entry[2])]
        if waits:
            writing.opened()
            wait: ReplicationWait[_Result] = ReplicationWait(_fail, writing.done)
            for partition, _, required_offset, result in waits:
                wait.add(partition, required_offset, result)
            wait.begin(self._replicas.delayed.produce, self._timeout_ms, look_first=True)
        wall_ms = self._env.wall_ms()
        for partition, watermark, _, _ in writing.appended:
            self._replicas.log_grew(partition, watermark, wall_ms)
        writing.done()
        return writing.pending

    def _write(self, marker: _Marker, writing: _Writing) -> None:
        for topic in marker.topics:
            for index in dict.fromkeys(topic.partition_indexes):
                result = writing.result_of(marker.producer_id, topic.name, index)
                if marker.producer_id < 0 or marker.producer_epoch < 0:
                    _fail(result, ErrorCode.INVALID_REQUEST)
                elif topic.name == OFFSETS_TOPIC:
                    self._end_offsets(marker, result, writing)
                else:
                    self._append(topic.name, marker, result, writing)

    def _end_offsets(self, marker: _Marker, result: _Result, writing: _Writing) -> None:
        shard = self._groups.shard_at(result.partition_index)
        if shard is None:
            _fail(result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        writing.opened()

        def answered(code: ErrorCode) -> None:
            _fail(result, code)
            writing.done()

        producer = (marker.producer_id, marker.producer_epoch)
        shard.writer.end_transaction(_outcome(marker), producer, marker.transaction_version, answered)

    def _append(self, topic: str, marker: _Marker, result: _Result, writing: _Writing) -> None:
        partition = self._replicas.partitions_named(topic).get(result.partition_index)
        if partition is None or partition.offline:
            _fail(result, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        watermark = partition.high_watermark
        try:
            info = partition.append_marker(
                _outcome(marker),
                marker.producer_id,
                marker.producer_epoch,
                marker.transaction_version,
                self._env.wall_ms(),
                self._env.now_ms(),
            )
        except KafkaError as error:
            self._env.log(
                "debug",
                "marker-not-written",
                topic=partition.topic,
                partition=partition.index,
                producer_id=marker.producer_id,
                error=error.code.name,
                why=str(error),
            )
            _fail(result, error.code)
        except OSError as error:
            self._replicas.storage_failed(partition, error)
            _fail(result, ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            writing.appended.append((partition, watermark, info.last_offset + 1, result))


def _outcome(marker: _Marker) -> TransactionMarker:
    return TransactionMarker(marker.transaction_result, marker.coordinator_epoch)


def _fail(result: _Result, code: ErrorCode) -> None:
    result.error_code = code
