"""Written by `python -m heirlog.protocol.generator` from specs/messages/create_partitions.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_io = _Shape(">i?").unpack_from
_pack_io = _Shape(">i?").pack
_unpack_ioB = _Shape(">i?B").unpack_from
_pack_iox = _Shape(">i?x").pack


class CreatePartitionsRequest(Message):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class CreatePartitionsTopic(Struct):
        __slots__ = (
            "name",
            "count",
            "assignments",
        )

        def __init__(
            self,
            *,
            name: str = "",
            count: int = 0,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = EMPTY,
        ) -> None:
            self.name: str = name
            self.count: int = count
            self.assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = [] if assignments is EMPTY else assignments

    class CreatePartitionsAssignment(Struct):
        __slots__ = (
            "broker_ids",
        )

        def __init__(
            self,
            *,
            broker_ids: list[int] = EMPTY,
        ) -> None:
            self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only


def _read_request_create_partitions_assignment(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreatePartitionsRequest.CreatePartitionsAssignment], int]:
    items: list[CreatePartitionsRequest.CreatePartitionsAssignment] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(CreatePartitionsRequest.CreatePartitionsAssignment)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("BrokerIds")
            x.broker_ids, pos = p.read_int32s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreatePartitionsRequest.CreatePartitionsAssignment)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("BrokerIds")
            x.broker_ids, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_create_partitions_assignment(out: Out, items: Sequence[CreatePartitionsRequest.CreatePartitionsAssignment], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            broker_ids = x.broker_ids
            n = len(broker_ids) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if broker_ids:
                w(p.int32s(broker_ids))
            w(b"\0")
    else:
        for x in items:
            broker_ids = x.broker_ids
            w(_pack_i(len(broker_ids)))
            if broker_ids:
                w(p.int32s(broker_ids))


def _read_request_create_partitions_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreatePartitionsRequest.CreatePartitionsTopic], int]:
    items: list[CreatePartitionsRequest.CreatePartitionsTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(CreatePartitionsRequest.CreatePartitionsTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            (x.count,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.assignments = None
            else:
                x.assignments, pos = _read_request_create_partitions_assignment(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreatePartitionsRequest.CreatePartitionsTopic)
            x.name, pos = p.read_string(buf, pos)
            (x.count,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.assignments = None
            else:
                x.assignments, pos = _read_request_create_partitions_assignment(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_create_partitions_topic(out: Out, items: Sequence[CreatePartitionsRequest.CreatePartitionsTopic], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            w(_pack_i(x.count))
            assignments = x.assignments
            if assignments is None:
                w(b"\0")
            else:
                n = len(assignments) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if assignments:
                    _write_request_create_partitions_assignment(out, assignments, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(_pack_i(x.count))
            assignments = x.assignments
            if assignments is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(assignments)))
                if assignments:
                    _write_request_create_partitions_assignment(out, assignments, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreatePartitionsRequest], int]:
    items: list[CreatePartitionsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreatePartitionsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_create_partitions_topic(buf, pos, n, version)
            (x.timeout_ms, x.validate_only, tags) = _unpack_ioB(buf, pos)
            pos += 6
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreatePartitionsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_create_partitions_topic(buf, pos, n, version)
            (x.timeout_ms, x.validate_only) = _unpack_io(buf, pos)
            pos += 5
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[CreatePartitionsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_create_partitions_topic(out, topics, version)
            w(_pack_iox(x.timeout_ms, x.validate_only))
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_create_partitions_topic(out, topics, version)
            w(_pack_io(x.timeout_ms, x.validate_only))


CreatePartitionsRequest.READ = _read_request
CreatePartitionsRequest.WRITE = _write_request


class CreatePartitionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 37
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class CreatePartitionsTopicResult(Struct):
        __slots__ = (
            "name",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            name: str = "",
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.name: str = name
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = [] if results is EMPTY else results


def _read_response_create_partitions_topic_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreatePartitionsResponse.CreatePartitionsTopicResult], int]:
    items: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreatePartitionsResponse.CreatePartitionsTopicResult)
            x.name, pos = p.read_compact_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreatePartitionsResponse.CreatePartitionsTopicResult)
            x.name, pos = p.read_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_create_partitions_topic_result(out: Out, items: Sequence[CreatePartitionsResponse.CreatePartitionsTopicResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreatePartitionsResponse], int]:
    items: list[CreatePartitionsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreatePartitionsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_create_partitions_topic_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreatePartitionsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_create_partitions_topic_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[CreatePartitionsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_create_partitions_topic_result(out, results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            w(_pack_i(len(results)))
            if results:
                _write_response_create_partitions_topic_result(out, results, version)


CreatePartitionsResponse.READ = _read_response
CreatePartitionsResponse.WRITE = _write_response
