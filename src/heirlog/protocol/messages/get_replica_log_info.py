"""Written by `python -m heirlog.protocol.generator` from specs/messages/get_replica_log_info.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iiiqh = _Shape(">iiiqh").unpack_from
_pack_iiiqh = _Shape(">iiiqh").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class GetReplicaLogInfoRequest(Message):
    __slots__ = (
        "broker_id",
        "topic_partitions",
    )
    API_KEY = 10093
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicPartitions(Struct):
        __slots__ = (
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partitions: list[int] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partitions: list[int] = [] if partitions is EMPTY else partitions

    def __init__(
        self,
        *,
        broker_id: int = 0,
        topic_partitions: list[GetReplicaLogInfoRequest.TopicPartitions] | None = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.topic_partitions: list[GetReplicaLogInfoRequest.TopicPartitions] | None = [] if topic_partitions is EMPTY else topic_partitions


def _read_request_topic_partitions(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GetReplicaLogInfoRequest.TopicPartitions], int]:
    items: list[GetReplicaLogInfoRequest.TopicPartitions] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(GetReplicaLogInfoRequest.TopicPartitions)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_partitions(out: Out, items: Sequence[GetReplicaLogInfoRequest.TopicPartitions], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            w(p.int32s(partitions))
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GetReplicaLogInfoRequest], int]:
    items: list[GetReplicaLogInfoRequest] = []
    for _ in range(count):
        x = new(GetReplicaLogInfoRequest)
        (x.broker_id,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.topic_partitions = None
        else:
            x.topic_partitions, pos = _read_request_topic_partitions(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[GetReplicaLogInfoRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.broker_id))
        topic_partitions = x.topic_partitions
        if topic_partitions is None:
            w(b"\0")
        else:
            n = len(topic_partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topic_partitions:
                _write_request_topic_partitions(out, topic_partitions, version)
        w(b"\0")


GetReplicaLogInfoRequest.READ = _read_request
GetReplicaLogInfoRequest.WRITE = _write_request


class GetReplicaLogInfoResponse(Message):
    __slots__ = (
        "broker_epoch",
        "topic_partition_log_info_list",
    )
    API_KEY = 10093
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicPartitionLogInfo(Struct):
        __slots__ = (
            "topic_id",
            "partition_log_info",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partition_log_info: list[GetReplicaLogInfoResponse.PartitionLogInfo] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partition_log_info: list[GetReplicaLogInfoResponse.PartitionLogInfo] = [] if partition_log_info is EMPTY else partition_log_info

    class PartitionLogInfo(Struct):
        __slots__ = (
            "partition",
            "last_written_leader_epoch",
            "current_leader_epoch",
            "log_end_offset",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            last_written_leader_epoch: int = -1,
            current_leader_epoch: int = -1,
            log_end_offset: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition: int = partition
            self.last_written_leader_epoch: int = last_written_leader_epoch
            self.current_leader_epoch: int = current_leader_epoch
            self.log_end_offset: int = log_end_offset
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        broker_epoch: int = -1,
        topic_partition_log_info_list: list[GetReplicaLogInfoResponse.TopicPartitionLogInfo] = EMPTY,
    ) -> None:
        self.broker_epoch: int = broker_epoch
        self.topic_partition_log_info_list: list[GetReplicaLogInfoResponse.TopicPartitionLogInfo] = [] if topic_partition_log_info_list is EMPTY else topic_partition_log_info_list


def _read_response_partition_log_info(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GetReplicaLogInfoResponse.PartitionLogInfo], int]:
    items: list[GetReplicaLogInfoResponse.PartitionLogInfo] = []
    for _ in range(count):
        x = new(GetReplicaLogInfoResponse.PartitionLogInfo)
        (x.partition, x.last_written_leader_epoch, x.current_leader_epoch, x.log_end_offset, x.error_code) = _unpack_iiiqh(buf, pos)
        pos += 22
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_partition_log_info(out: Out, items: Sequence[GetReplicaLogInfoResponse.PartitionLogInfo], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iiiqh(x.partition, x.last_written_leader_epoch, x.current_leader_epoch, x.log_end_offset, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


def _read_response_topic_partition_log_info(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GetReplicaLogInfoResponse.TopicPartitionLogInfo], int]:
    items: list[GetReplicaLogInfoResponse.TopicPartitionLogInfo] = []
    for _ in range(count):
        x = new(GetReplicaLogInfoResponse.TopicPartitionLogInfo)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("PartitionLogInfo")
        x.partition_log_info, pos = _read_response_partition_log_info(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_topic_partition_log_info(out: Out, items: Sequence[GetReplicaLogInfoResponse.TopicPartitionLogInfo], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partition_log_info = x.partition_log_info
        n = len(partition_log_info) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partition_log_info:
            _write_response_partition_log_info(out, partition_log_info, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GetReplicaLogInfoResponse], int]:
    items: list[GetReplicaLogInfoResponse] = []
    for _ in range(count):
        x = new(GetReplicaLogInfoResponse)
        (x.broker_epoch,) = _unpack_q(buf, pos)
        pos += 8
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("TopicPartitionLogInfoList")
        x.topic_partition_log_info_list, pos = _read_response_topic_partition_log_info(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[GetReplicaLogInfoResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_q(x.broker_epoch))
        topic_partition_log_info_list = x.topic_partition_log_info_list
        n = len(topic_partition_log_info_list) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topic_partition_log_info_list:
            _write_response_topic_partition_log_info(out, topic_partition_log_info_list, version)
        w(b"\0")


GetReplicaLogInfoResponse.READ = _read_response
GetReplicaLogInfoResponse.WRITE = _write_response
