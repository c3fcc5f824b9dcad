"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_producers.spec. Do not edit."""

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
_unpack_qiiqiqB = _Shape(">qiiqiqB").unpack_from
_pack_qiiqiqx = _Shape(">qiiqiqx").pack


class DescribeProducersRequest(Message):
    __slots__ = (
        "topics",
    )
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicRequest(Struct):
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
        topics: list[DescribeProducersRequest.TopicRequest] = EMPTY,
    ) -> None:
        self.topics: list[DescribeProducersRequest.TopicRequest] = [] if topics is EMPTY else topics


def _read_request_topic_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersRequest.TopicRequest], int]:
    items: list[DescribeProducersRequest.TopicRequest] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeProducersRequest.TopicRequest)
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


def _write_request_topic_request(out: Out, items: Sequence[DescribeProducersRequest.TopicRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partition_indexes = x.partition_indexes
        n = len(partition_indexes) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partition_indexes:
            w(p.int32s(partition_indexes))
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersRequest], int]:
    items: list[DescribeProducersRequest] = []
    for _ in range(count):
        x = new(DescribeProducersRequest)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_request(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeProducersRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_request(out, topics, version)
        w(b"\0")


DescribeProducersRequest.READ = _read_request
DescribeProducersRequest.WRITE = _write_request


class DescribeProducersResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 61
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class TopicResponse(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeProducersResponse.PartitionResponse] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[DescribeProducersResponse.PartitionResponse] = [] if partitions is EMPTY else partitions

    class PartitionResponse(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "error_message",
            "active_producers",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: list[DescribeProducersResponse.ProducerState] = EMPTY,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.active_producers: list[DescribeProducersResponse.ProducerState] = [] if active_producers is EMPTY else active_producers

    class ProducerState(Struct):
        __slots__ = (
            "producer_id",
            "producer_epoch",
            "last_sequence",
            "last_timestamp",
            "coordinator_epoch",
            "current_txn_start_offset",
        )

        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
        ) -> None:
            self.producer_id: int = producer_id
            self.producer_epoch: int = producer_epoch
            self.last_sequence: int = last_sequence
            self.last_timestamp: int = last_timestamp
            self.coordinator_epoch: int = coordinator_epoch
            self.current_txn_start_offset: int = current_txn_start_offset

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeProducersResponse.TopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeProducersResponse.TopicResponse] = [] if topics is EMPTY else topics


def _read_response_producer_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersResponse.ProducerState], int]:
    items: list[DescribeProducersResponse.ProducerState] = []
    for _ in range(count):
        x = new(DescribeProducersResponse.ProducerState)
        (x.producer_id, x.producer_epoch, x.last_sequence, x.last_timestamp, x.coordinator_epoch, x.current_txn_start_offset, tags) = _unpack_qiiqiqB(buf, pos)
        pos += 37
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_producer_state(out: Out, items: Sequence[DescribeProducersResponse.ProducerState], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_qiiqiqx(x.producer_id, x.producer_epoch, x.last_sequence, x.last_timestamp, x.coordinator_epoch, x.current_txn_start_offset))


def _read_response_partition_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersResponse.PartitionResponse], int]:
    items: list[DescribeProducersResponse.PartitionResponse] = []
    for _ in range(count):
        x = new(DescribeProducersResponse.PartitionResponse)
        (x.partition_index, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("ActiveProducers")
        x.active_producers, pos = _read_response_producer_state(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_partition_response(out: Out, items: Sequence[DescribeProducersResponse.PartitionResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.partition_index, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        active_producers = x.active_producers
        n = len(active_producers) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if active_producers:
            _write_response_producer_state(out, active_producers, version)
        w(b"\0")


def _read_response_topic_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersResponse.TopicResponse], int]:
    items: list[DescribeProducersResponse.TopicResponse] = []
    for _ in range(count):
        x = new(DescribeProducersResponse.TopicResponse)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_partition_response(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_topic_response(out: Out, items: Sequence[DescribeProducersResponse.TopicResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_response(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeProducersResponse], int]:
    items: list[DescribeProducersResponse] = []
    for _ in range(count):
        x = new(DescribeProducersResponse)
        (x.throttle_time_ms,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_topic_response(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeProducersResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.throttle_time_ms))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_topic_response(out, topics, version)
        w(b"\0")


DescribeProducersResponse.READ = _read_response
DescribeProducersResponse.WRITE = _write_response
