"""Written by `python -m heirlog.protocol.generator` from specs/messages/list_partition_reassignments.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class ListPartitionReassignmentsRequest(Message):
    __slots__ = (
        "timeout_ms",
        "topics",
    )
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class ListPartitionReassignmentsTopics(Struct):
        __slots__ = (
            "name",
            "partition_indexes",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = topics


def _read_request_list_partition_reassignments_topics(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics], int]:
    items: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("PartitionIndexes")
        x.partition_indexes, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_list_partition_reassignments_topics(out: Out, items: Sequence[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partition_indexes = x.partition_indexes
        n = len(partition_indexes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partition_indexes:
            w(p.int32s(partition_indexes))
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListPartitionReassignmentsRequest], int]:
    items: list[ListPartitionReassignmentsRequest] = []
    for _ in range(count):
        x = new(ListPartitionReassignmentsRequest)
        (x.timeout_ms,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.topics = None
        else:
            x.topics, pos = _read_request_list_partition_reassignments_topics(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ListPartitionReassignmentsRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.timeout_ms))
        topics = x.topics
        if topics is None:
            w(b"\0")
        else:
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_list_partition_reassignments_topics(out, topics, version)
        w(b"\0")


ListPartitionReassignmentsRequest.READ = _read_request
ListPartitionReassignmentsRequest.WRITE = _write_request


class ListPartitionReassignmentsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )
    API_KEY = 46
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class OngoingTopicReassignment(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = [] if partitions is EMPTY else partitions

    class OngoingPartitionReassignment(Struct):
        __slots__ = (
            "partition_index",
            "replicas",
            "adding_replicas",
            "removing_replicas",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] = EMPTY,
            adding_replicas: list[int] = EMPTY,
            removing_replicas: list[int] = EMPTY,
        ) -> None:
            self.partition_index: int = partition_index
            self.replicas: list[int] = [] if replicas is EMPTY else replicas
            self.adding_replicas: list[int] = [] if adding_replicas is EMPTY else adding_replicas
            self.removing_replicas: list[int] = [] if removing_replicas is EMPTY else removing_replicas

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = [] if topics is EMPTY else topics


def _read_response_ongoing_partition_reassignment(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment], int]:
    items: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = []
    for _ in range(count):
        x = new(ListPartitionReassignmentsResponse.OngoingPartitionReassignment)
        (x.partition_index,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Replicas")
        x.replicas, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("AddingReplicas")
        x.adding_replicas, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("RemovingReplicas")
        x.removing_replicas, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_ongoing_partition_reassignment(out: Out, items: Sequence[ListPartitionReassignmentsResponse.OngoingPartitionReassignment], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.partition_index))
        replicas = x.replicas
        n = len(replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if replicas:
            w(p.int32s(replicas))
        adding_replicas = x.adding_replicas
        n = len(adding_replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if adding_replicas:
            w(p.int32s(adding_replicas))
        removing_replicas = x.removing_replicas
        n = len(removing_replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if removing_replicas:
            w(p.int32s(removing_replicas))
        w(b"\0")


def _read_response_ongoing_topic_reassignment(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListPartitionReassignmentsResponse.OngoingTopicReassignment], int]:
    items: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = []
    for _ in range(count):
        x = new(ListPartitionReassignmentsResponse.OngoingTopicReassignment)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_ongoing_partition_reassignment(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_ongoing_topic_reassignment(out: Out, items: Sequence[ListPartitionReassignmentsResponse.OngoingTopicReassignment], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_ongoing_partition_reassignment(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListPartitionReassignmentsResponse], int]:
    items: list[ListPartitionReassignmentsResponse] = []
    for _ in range(count):
        x = new(ListPartitionReassignmentsResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_ongoing_topic_reassignment(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ListPartitionReassignmentsResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_ongoing_topic_reassignment(out, topics, version)
        w(b"\0")


ListPartitionReassignmentsResponse.READ = _read_response
ListPartitionReassignmentsResponse.WRITE = _write_response
