"""Written by `python -m heirlog.protocol.generator` from specs/messages/delete_records.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_unpack_iqB = _Shape(">iqB").unpack_from
_unpack_iqh = _Shape(">iqh").unpack_from
_pack_iqh = _Shape(">iqh").pack
_unpack_iqhB = _Shape(">iqhB").unpack_from
_pack_iqhx = _Shape(">iqhx").pack
_pack_iqx = _Shape(">iqx").pack
_pack_ix = _Shape(">ix").pack


class DeleteRecordsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
    )
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    class DeleteRecordsTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = [] if partitions is EMPTY else partitions

    class DeleteRecordsPartition(Struct):
        __slots__ = (
            "partition_index",
            "offset",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.offset: int = offset

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms


def _read_request_delete_records_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsRequest.DeleteRecordsPartition], int]:
    items: list[DeleteRecordsRequest.DeleteRecordsPartition] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsRequest.DeleteRecordsPartition)
            (x.partition_index, x.offset, tags) = _unpack_iqB(buf, pos)
            pos += 13
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsRequest.DeleteRecordsPartition)
            (x.partition_index, x.offset) = _unpack_iq(buf, pos)
            pos += 12
            items.append(x)
    return items, pos


def _write_request_delete_records_partition(out: Out, items: Sequence[DeleteRecordsRequest.DeleteRecordsPartition], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_iqx(x.partition_index, x.offset))
    else:
        for x in items:
            w(_pack_iq(x.partition_index, x.offset))


def _read_request_delete_records_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsRequest.DeleteRecordsTopic], int]:
    items: list[DeleteRecordsRequest.DeleteRecordsTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsRequest.DeleteRecordsTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_delete_records_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsRequest.DeleteRecordsTopic)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_delete_records_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_delete_records_topic(out: Out, items: Sequence[DeleteRecordsRequest.DeleteRecordsTopic], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_delete_records_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_delete_records_partition(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsRequest], int]:
    items: list[DeleteRecordsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_delete_records_topic(buf, pos, n, version)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_delete_records_topic(buf, pos, n, version)
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DeleteRecordsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_delete_records_topic(out, topics, version)
            w(_pack_ix(x.timeout_ms))
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_delete_records_topic(out, topics, version)
            w(_pack_i(x.timeout_ms))


DeleteRecordsRequest.READ = _read_request
DeleteRecordsRequest.WRITE = _write_request


class DeleteRecordsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    class DeleteRecordsTopicResult(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = [] if partitions is EMPTY else partitions

    class DeleteRecordsPartitionResult(Struct):
        __slots__ = (
            "partition_index",
            "low_watermark",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.low_watermark: int = low_watermark
            self.error_code: int = error_code

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = [] if topics is EMPTY else topics


def _read_response_delete_records_partition_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsResponse.DeleteRecordsPartitionResult], int]:
    items: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsResponse.DeleteRecordsPartitionResult)
            (x.partition_index, x.low_watermark, x.error_code, tags) = _unpack_iqhB(buf, pos)
            pos += 15
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsResponse.DeleteRecordsPartitionResult)
            (x.partition_index, x.low_watermark, x.error_code) = _unpack_iqh(buf, pos)
            pos += 14
            items.append(x)
    return items, pos


def _write_response_delete_records_partition_result(out: Out, items: Sequence[DeleteRecordsResponse.DeleteRecordsPartitionResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_iqhx(x.partition_index, x.low_watermark, x.error_code))
    else:
        for x in items:
            w(_pack_iqh(x.partition_index, x.low_watermark, x.error_code))


def _read_response_delete_records_topic_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsResponse.DeleteRecordsTopicResult], int]:
    items: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsResponse.DeleteRecordsTopicResult)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_delete_records_partition_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsResponse.DeleteRecordsTopicResult)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_delete_records_partition_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_delete_records_topic_result(out: Out, items: Sequence[DeleteRecordsResponse.DeleteRecordsTopicResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_delete_records_partition_result(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_delete_records_partition_result(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteRecordsResponse], int]:
    items: list[DeleteRecordsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteRecordsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_delete_records_topic_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteRecordsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_delete_records_topic_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DeleteRecordsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_delete_records_topic_result(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_delete_records_topic_result(out, topics, version)


DeleteRecordsResponse.READ = _read_response
DeleteRecordsResponse.WRITE = _write_response
