"""What leaders promise to producers, checked when each answer leaves the leader (T17).

It also records which broker acknowledged in which leader epoch, for `two-leaders` (`heirlog.sim.history_checks.sends`).

When an acks=all Produce succeeds, first or repeated, its records are committed. Two error codes mean success:

    NONE                        with the offset: the records end there
    DUPLICATE_SEQUENCE_NUMBER   without an offset. Clients treat it as success, so the leader's log is searched for the
                                records

Records that are no longer in the log (retention, compaction, an election on a lossy basis since) cannot be checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heirlog.broker.partition import ALL_IN_SYNC, Partition, ReplicaRole
from heirlog.protocol.batch import BatchHeader, walk
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ProduceRequest
from heirlog.protocol.primitives import records_view
from heirlog.protocol.types import Uuid
from heirlog.sim.history import AcknowledgedBy
from heirlog.sim.invariants import t17_success_is_committed
from heirlog.sim.oracle import Key, Oracle
from heirlog.sim.world import Process

READ_BYTES = 1 << 20
SUCCESSES = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


class ProduceChecker:
    """`answered` is a listener of `network.answer_listeners`."""

    def __init__(self, oracle: Oracle) -> None:
        self._seen = oracle

    def answered(self, server: Process, request: Any, response: Any) -> None:
        if not isinstance(request, ProduceRequest) or request.acks != ALL_IN_SYNC:
            return
        machine = self._seen.cluster.machines_by_host[server.host.name]
        node = machine.running
        if node is None or machine.process is not server:
            return
        for topic, answered in zip(request.topic_data, response.responses, strict=True):
            for data, answer in zip(topic.partition_data, answered.partition_responses, strict=True):
                key = (Uuid(topic.topic_id), data.index)
                partition = node.broker.replicas.partition(key)
                if answer.error_code in SUCCESSES and partition is not None and not partition.offline:
                    self._judge(machine.node_id, key, partition, data.records, answer)

    def _judge(self, broker: int, key: Key, partition: Partition, records: Any, answer: Any) -> None:
        headers = [header for _, header in walk(records_view(records))]
        model = self._seen.model(key)
        if partition.role is ReplicaRole.LEADER:
            self._seen.history.acknowledged_by.add(AcknowledgedBy(model.name, partition.leader_epoch, broker))
        if model.begins_at_epoch is not None:
            return
        end = _end_of(partition, headers, answer)
        if end is None and _forgets(partition):
            return
        # one that has lost the leadership since it answered may know less than what others have exposed
        high_watermark = partition.high_watermark
        if partition.role is not ReplicaRole.LEADER:
            high_watermark = max(high_watermark, model.true.offset)
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._seen.world.counters["produce.duplicate"] += 1
        self._seen.must_not("T17", t17_success_is_committed(broker, end, high_watermark), model.name)


def _end_of(partition: Partition, headers: list[BatchHeader], answer: Any) -> int | None:
    """One past the last record's offset in the leader's log; None: it is not there."""
    if answer.error_code == ErrorCode.NONE and answer.base_offset >= 0:
        return int(answer.base_offset) + sum(header.last_offset_delta + 1 for header in headers)
    last = headers[-1]
    wanted = (last.producer_id, last.producer_epoch, last.base_sequence, last.last_sequence)
    for found in _batches(partition):
        if (found.producer_id, found.producer_epoch, found.base_sequence, found.last_sequence) == wanted:
            return found.next_offset
    return None


def _batches(partition: Partition) -> Iterator[BatchHeader]:
    offset, end = partition.log.log_start_offset, partition.log.log_end_offset
    while offset < end:
        before = offset
        for region in partition.log.read(offset, READ_BYTES, end).regions:
            for _, header in walk(region.read()):
                yield header
                offset = header.next_offset
        if offset == before:
            return


def _forgets(partition: Partition) -> bool:
    return partition.log.config.compact or partition.log.log_start_offset > 0
