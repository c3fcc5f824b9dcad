"""Written by `python -m heirlog.protocol.generator` from specs/messages/offset_delete.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import EMPTY, Message, Out, Struct, new

_unpack_hi = _Shape(">hi").unpack_from
_pack_hi = _Shape(">hi").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class OffsetDeleteRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    class OffsetDeleteRequestTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = [] if partitions is EMPTY else partitions

    class OffsetDeleteRequestPartition(Struct):
        __slots__ = (
            "partition_index",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None:
            self.partition_index: int = partition_index

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = [] if topics is EMPTY else topics


def _read_request_offset_delete_request_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteRequest.OffsetDeleteRequestPartition], int]:
    items: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(OffsetDeleteRequest.OffsetDeleteRequestPartition)
        (x.partition_index,) = _unpack_i(buf, pos)
        pos += 4
        items.append(x)
    return items, pos


def _write_request_offset_delete_request_partition(out: Out, items: Sequence[OffsetDeleteRequest.OffsetDeleteRequestPartition], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.partition_index))


def _read_request_offset_delete_request_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteRequest.OffsetDeleteRequestTopic], int]:
    items: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(OffsetDeleteRequest.OffsetDeleteRequestTopic)
        x.name, pos = p.read_string(buf, pos)
        n, pos = p.read_length(buf, pos)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_request_offset_delete_request_partition(buf, pos, n, version)
        items.append(x)
    return items, pos


def _write_request_offset_delete_request_topic(out: Out, items: Sequence[OffsetDeleteRequest.OffsetDeleteRequestTopic], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.name))
        partitions = x.partitions
        w(_pack_i(len(partitions)))
        if partitions:
            _write_request_offset_delete_request_partition(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteRequest], int]:
    items: list[OffsetDeleteRequest] = []
    for _ in range(count):
        x = new(OffsetDeleteRequest)
        x.group_id, pos = p.read_string(buf, pos)
        n, pos = p.read_length(buf, pos)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_offset_delete_request_topic(buf, pos, n, version)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[OffsetDeleteRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.group_id))
        topics = x.topics
        w(_pack_i(len(topics)))
        if topics:
            _write_request_offset_delete_request_topic(out, topics, version)


OffsetDeleteRequest.READ = _read_request
OffsetDeleteRequest.WRITE = _write_request


class OffsetDeleteResponse(Message):
    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 47
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    class OffsetDeleteResponseTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = [] if partitions is EMPTY else partitions

    class OffsetDeleteResponsePartition(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = [] if topics is EMPTY else topics


def _read_response_offset_delete_response_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteResponse.OffsetDeleteResponsePartition], int]:
    items: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = []
    for _ in range(count):
        x = new(OffsetDeleteResponse.OffsetDeleteResponsePartition)
        (x.partition_index, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        items.append(x)
    return items, pos


def _write_response_offset_delete_response_partition(out: Out, items: Sequence[OffsetDeleteResponse.OffsetDeleteResponsePartition], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.partition_index, x.error_code))


def _read_response_offset_delete_response_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteResponse.OffsetDeleteResponseTopic], int]:
    items: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = []
    for _ in range(count):
        x = new(OffsetDeleteResponse.OffsetDeleteResponseTopic)
        x.name, pos = p.read_string(buf, pos)
        n, pos = p.read_length(buf, pos)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_offset_delete_response_partition(buf, pos, n, version)
        items.append(x)
    return items, pos


def _write_response_offset_delete_response_topic(out: Out, items: Sequence[OffsetDeleteResponse.OffsetDeleteResponseTopic], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.name))
        partitions = x.partitions
        w(_pack_i(len(partitions)))
        if partitions:
            _write_response_offset_delete_response_partition(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetDeleteResponse], int]:
    items: list[OffsetDeleteResponse] = []
    for _ in range(count):
        x = new(OffsetDeleteResponse)
        (x.error_code, x.throttle_time_ms) = _unpack_hi(buf, pos)
        pos += 6
        n, pos = p.read_length(buf, pos)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_offset_delete_response_topic(buf, pos, n, version)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[OffsetDeleteResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hi(x.error_code, x.throttle_time_ms))
        topics = x.topics
        w(_pack_i(len(topics)))
        if topics:
            _write_response_offset_delete_response_topic(out, topics, version)


OffsetDeleteResponse.READ = _read_response
OffsetDeleteResponse.WRITE = _write_response
