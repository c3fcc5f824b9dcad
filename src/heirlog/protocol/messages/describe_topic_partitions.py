"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_topic_partitions.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_uo = _Shape(">16s?").unpack_from
_pack_uo = _Shape(">16s?").pack
_unpack_b = _Shape(">b").unpack_from
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hiii = _Shape(">hiii").unpack_from
_pack_hiii = _Shape(">hiii").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_pack_ix = _Shape(">ix").pack


class DescribeTopicPartitionsRequest(Message):
    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicRequest(Struct):
        __slots__ = (
            "name",
        )

        def __init__(
            self,
            *,
            name: str = "",
        ) -> None:
            self.name: str = name

    class Cursor(Struct):
        __slots__ = (
            "topic_name",
            "partition_index",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name: str = topic_name
            self.partition_index: int = partition_index

    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
    ) -> None:
        self.topics: list[DescribeTopicPartitionsRequest.TopicRequest] = [] if topics is EMPTY else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: DescribeTopicPartitionsRequest.Cursor | None = cursor


def _read_request_cursor(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsRequest.Cursor], int]:
    items: list[DescribeTopicPartitionsRequest.Cursor] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeTopicPartitionsRequest.Cursor)
        x.topic_name, pos = p.read_compact_string(buf, pos)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_cursor(out: Out, items: Sequence[DescribeTopicPartitionsRequest.Cursor], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        w(_pack_ix(x.partition_index))


def _read_request_topic_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsRequest.TopicRequest], int]:
    items: list[DescribeTopicPartitionsRequest.TopicRequest] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeTopicPartitionsRequest.TopicRequest)
        x.name, pos = p.read_compact_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_request(out: Out, items: Sequence[DescribeTopicPartitionsRequest.TopicRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsRequest], int]:
    items: list[DescribeTopicPartitionsRequest] = []
    for _ in range(count):
        x = new(DescribeTopicPartitionsRequest)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_request(buf, pos, n, version)
        (x.response_partition_limit,) = _unpack_i(buf, pos)
        pos += 4
        (present,) = _unpack_b(buf, pos)
        pos += 1
        if present < 0:
            x.cursor = None
        else:
            ((x.cursor,), pos) = _read_request_cursor(buf, pos, 1, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeTopicPartitionsRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_request(out, topics, version)
        w(_pack_i(x.response_partition_limit))
        if x.cursor is None:
            w(b"\xff")
        else:
            w(b"\1")
            _write_request_cursor(out, (x.cursor,), version)
        w(b"\0")


DescribeTopicPartitionsRequest.READ = _read_request
DescribeTopicPartitionsRequest.WRITE = _write_request


class DescribeTopicPartitionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )
    API_KEY = 75
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class DescribeTopicPartitionsResponseTopic(Struct):
        __slots__ = (
            "error_code",
            "name",
            "topic_id",
            "is_internal",
            "partitions",
            "topic_authorized_operations",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = None,
            topic_id: bytes = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = EMPTY,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code: int = error_code
            self.name: str | None = name
            self.topic_id: bytes = topic_id
            self.is_internal: bool = is_internal
            self.partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = [] if partitions is EMPTY else partitions
            self.topic_authorized_operations: int = topic_authorized_operations

    class DescribeTopicPartitionsResponsePartition(Struct):
        __slots__ = (
            "error_code",
            "partition_index",
            "leader_id",
            "leader_epoch",
            "replica_nodes",
            "isr_nodes",
            "eligible_leader_replicas",
            "last_known_elr",
            "offline_replicas",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = EMPTY,
            isr_nodes: list[int] = EMPTY,
            eligible_leader_replicas: list[int] | None = None,
            last_known_elr: list[int] | None = None,
            offline_replicas: list[int] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.partition_index: int = partition_index
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
            self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
            self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
            self.last_known_elr: list[int] | None = last_known_elr
            self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas

    class Cursor(Struct):
        __slots__ = (
            "topic_name",
            "partition_index",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None:
            self.topic_name: str = topic_name
            self.partition_index: int = partition_index

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = [] if topics is EMPTY else topics
        self.next_cursor: DescribeTopicPartitionsResponse.Cursor | None = next_cursor


def _read_response_cursor(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsResponse.Cursor], int]:
    items: list[DescribeTopicPartitionsResponse.Cursor] = []
    for _ in range(count):
        x = new(DescribeTopicPartitionsResponse.Cursor)
        x.topic_name, pos = p.read_compact_string(buf, pos)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_cursor(out: Out, items: Sequence[DescribeTopicPartitionsResponse.Cursor], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        w(_pack_ix(x.partition_index))


def _read_response_describe_topic_partitions_response_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition], int]:
    items: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = []
    for _ in range(count):
        x = new(DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition)
        (x.error_code, x.partition_index, x.leader_id, x.leader_epoch) = _unpack_hiii(buf, pos)
        pos += 14
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("ReplicaNodes")
        x.replica_nodes, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("IsrNodes")
        x.isr_nodes, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.eligible_leader_replicas = None
        else:
            x.eligible_leader_replicas, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            x.last_known_elr = None
        else:
            x.last_known_elr, pos = p.read_int32s(buf, pos, n)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("OfflineReplicas")
        x.offline_replicas, pos = p.read_int32s(buf, pos, n)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_describe_topic_partitions_response_partition(out: Out, items: Sequence[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hiii(x.error_code, x.partition_index, x.leader_id, x.leader_epoch))
        replica_nodes = x.replica_nodes
        n = len(replica_nodes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if replica_nodes:
            w(p.int32s(replica_nodes))
        isr_nodes = x.isr_nodes
        n = len(isr_nodes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if isr_nodes:
            w(p.int32s(isr_nodes))
        eligible_leader_replicas = x.eligible_leader_replicas
        if eligible_leader_replicas is None:
            w(b"\0")
        else:
            n = len(eligible_leader_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if eligible_leader_replicas:
                w(p.int32s(eligible_leader_replicas))
        last_known_elr = x.last_known_elr
        if last_known_elr is None:
            w(b"\0")
        else:
            n = len(last_known_elr) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if last_known_elr:
                w(p.int32s(last_known_elr))
        offline_replicas = x.offline_replicas
        n = len(offline_replicas) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if offline_replicas:
            w(p.int32s(offline_replicas))
        w(b"\0")


def _read_response_describe_topic_partitions_response_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic], int]:
    items: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count):
        x = new(DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic)
        (x.error_code,) = _unpack_h(buf, pos)
        pos += 2
        x.name, pos = p.read_compact_nullable_string(buf, pos)
        (x.topic_id, x.is_internal) = _unpack_uo(buf, pos)
        pos += 17
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_describe_topic_partitions_response_partition(buf, pos, n, version)
        (x.topic_authorized_operations, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_describe_topic_partitions_response_topic(out: Out, items: Sequence[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_h(x.error_code))
        w(p.compact_nullable_string(x.name))
        w(_pack_uo(x.topic_id, x.is_internal))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_describe_topic_partitions_response_partition(out, partitions, version)
        w(_pack_ix(x.topic_authorized_operations))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeTopicPartitionsResponse], int]:
    items: list[DescribeTopicPartitionsResponse] = []
    for _ in range(count):
        x = new(DescribeTopicPartitionsResponse)
        (x.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_describe_topic_partitions_response_topic(buf, pos, n, version)
        (present,) = _unpack_b(buf, pos)
        pos += 1
        if present < 0:
            x.next_cursor = None
        else:
            ((x.next_cursor,), pos) = _read_response_cursor(buf, pos, 1, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeTopicPartitionsResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.throttle_time_ms))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_describe_topic_partitions_response_topic(out, topics, version)
        if x.next_cursor is None:
            w(b"\xff")
        else:
            w(b"\1")
            _write_response_cursor(out, (x.next_cursor,), version)
        w(b"\0")


DescribeTopicPartitionsResponse.READ = _read_response
DescribeTopicPartitionsResponse.WRITE = _write_response
