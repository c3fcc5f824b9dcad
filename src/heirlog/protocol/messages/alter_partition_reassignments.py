"""Written by `python -m heirlog.protocol.generator` from specs/messages/alter_partition_reassignments.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_io = _Shape(">i?").unpack_from
_pack_io = _Shape(">i?").pack
_unpack_ioh = _Shape(">i?h").unpack_from
_pack_ioh = _Shape(">i?h").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class ReassignableTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = [] if partitions is EMPTY else partitions

    class ReassignablePartition(Struct):
        __slots__ = (
            "partition_index",
            "replicas",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] | None = None,
        ) -> None:
            self.partition_index: int = partition_index
            self.replicas: list[int] | None = replicas

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = EMPTY,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = [] if topics is EMPTY else topics


def _read_request_reassignable_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsRequest.ReassignablePartition], int]:
    items: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AlterPartitionReassignmentsRequest.ReassignablePartition)
        (x.partition_index,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.replicas = None
        else:
            x.replicas, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_reassignable_partition(out: Out, items: Sequence[AlterPartitionReassignmentsRequest.ReassignablePartition], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.partition_index))
        replicas = x.replicas
        if replicas is None:
            w(b"\0")
        else:
            n = len(replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replicas:
                w(p.int32s(replicas))
        w(b"\0")


def _read_request_reassignable_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsRequest.ReassignableTopic], int]:
    items: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AlterPartitionReassignmentsRequest.ReassignableTopic)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_request_reassignable_partition(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_reassignable_topic(out: Out, items: Sequence[AlterPartitionReassignmentsRequest.ReassignableTopic], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_reassignable_partition(out, partitions, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsRequest], int]:
    items: list[AlterPartitionReassignmentsRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(AlterPartitionReassignmentsRequest)
            (x.timeout_ms, x.allow_replication_factor_change) = _unpack_io(buf, pos)
            pos += 5
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_reassignable_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterPartitionReassignmentsRequest)
            x.allow_replication_factor_change = True
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_reassignable_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[AlterPartitionReassignmentsRequest], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_io(x.timeout_ms, x.allow_replication_factor_change))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_reassignable_topic(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.timeout_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_reassignable_topic(out, topics, version)
            w(b"\0")


AlterPartitionReassignmentsRequest.READ = _read_request
AlterPartitionReassignmentsRequest.WRITE = _write_request


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )
    API_KEY = 45
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class ReassignableTopicResponse(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = [] if partitions is EMPTY else partitions

    class ReassignablePartitionResponse(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = [] if responses is EMPTY else responses


def _read_response_reassignable_partition_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse], int]:
    items: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = []
    for _ in range(count):
        x = new(AlterPartitionReassignmentsResponse.ReassignablePartitionResponse)
        (x.partition_index, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_reassignable_partition_response(out: Out, items: Sequence[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.partition_index, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


def _read_response_reassignable_topic_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse], int]:
    items: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = []
    for _ in range(count):
        x = new(AlterPartitionReassignmentsResponse.ReassignableTopicResponse)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_reassignable_partition_response(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_reassignable_topic_response(out: Out, items: Sequence[AlterPartitionReassignmentsResponse.ReassignableTopicResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_reassignable_partition_response(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterPartitionReassignmentsResponse], int]:
    items: list[AlterPartitionReassignmentsResponse] = []
    if version >= 1:
        for _ in range(count):
            x = new(AlterPartitionReassignmentsResponse)
            (x.throttle_time_ms, x.allow_replication_factor_change, x.error_code) = _unpack_ioh(buf, pos)
            pos += 7
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_reassignable_topic_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterPartitionReassignmentsResponse)
            x.allow_replication_factor_change = True
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_reassignable_topic_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[AlterPartitionReassignmentsResponse], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_ioh(x.throttle_time_ms, x.allow_replication_factor_change, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_reassignable_topic_response(out, responses, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_reassignable_topic_response(out, responses, version)
            w(b"\0")


AlterPartitionReassignmentsResponse.READ = _read_response
AlterPartitionReassignmentsResponse.WRITE = _write_response
