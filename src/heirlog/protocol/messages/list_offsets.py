"""Written by `python -m heirlog.protocol.generator` from specs/messages/list_offsets.spec. Do not edit."""

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
_unpack_ib = _Shape(">ib").unpack_from
_pack_ib = _Shape(">ib").pack
_unpack_ihqq = _Shape(">ihqq").unpack_from
_pack_ihqq = _Shape(">ihqq").pack
_unpack_ihqqi = _Shape(">ihqqi").unpack_from
_pack_ihqqi = _Shape(">ihqqi").pack
_unpack_ihqqiB = _Shape(">ihqqiB").unpack_from
_pack_ihqqix = _Shape(">ihqqix").pack
_unpack_iiq = _Shape(">iiq").unpack_from
_pack_iiq = _Shape(">iiq").pack
_unpack_iiqB = _Shape(">iiqB").unpack_from
_pack_iiqx = _Shape(">iiqx").pack
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_pack_ix = _Shape(">ix").pack


class ListOffsetsRequest(Message):
    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_VERSION = 6

    class ListOffsetsTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[ListOffsetsRequest.ListOffsetsPartition] = [] if partitions is EMPTY else partitions

    class ListOffsetsPartition(Struct):
        __slots__ = (
            "partition_index",
            "current_leader_epoch",
            "timestamp",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.current_leader_epoch: int = current_leader_epoch
            self.timestamp: int = timestamp

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsRequest.ListOffsetsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms


def _read_request_list_offsets_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsRequest.ListOffsetsPartition], int]:
    items: list[ListOffsetsRequest.ListOffsetsPartition] = []
    if count > 1:
        p.spend(count)
    if version >= 6:
        for _ in range(count):
            x = new(ListOffsetsRequest.ListOffsetsPartition)
            (x.partition_index, x.current_leader_epoch, x.timestamp, tags) = _unpack_iiqB(buf, pos)
            pos += 17
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(ListOffsetsRequest.ListOffsetsPartition)
            (x.partition_index, x.current_leader_epoch, x.timestamp) = _unpack_iiq(buf, pos)
            pos += 16
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsRequest.ListOffsetsPartition)
            x.current_leader_epoch = -1
            (x.partition_index, x.timestamp) = _unpack_iq(buf, pos)
            pos += 12
            items.append(x)
    return items, pos


def _write_request_list_offsets_partition(out: Out, items: Sequence[ListOffsetsRequest.ListOffsetsPartition], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(_pack_iiqx(x.partition_index, x.current_leader_epoch, x.timestamp))
    elif version >= 4:
        for x in items:
            w(_pack_iiq(x.partition_index, x.current_leader_epoch, x.timestamp))
    else:
        for x in items:
            w(_pack_iq(x.partition_index, x.timestamp))


def _read_request_list_offsets_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsRequest.ListOffsetsTopic], int]:
    items: list[ListOffsetsRequest.ListOffsetsTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 6:
        for _ in range(count):
            x = new(ListOffsetsRequest.ListOffsetsTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_list_offsets_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsRequest.ListOffsetsTopic)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_list_offsets_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_list_offsets_topic(out: Out, items: Sequence[ListOffsetsRequest.ListOffsetsTopic], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_list_offsets_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_list_offsets_partition(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsRequest], int]:
    items: list[ListOffsetsRequest] = []
    if version >= 10:
        for _ in range(count):
            x = new(ListOffsetsRequest)
            (x.replica_id, x.isolation_level) = _unpack_ib(buf, pos)
            pos += 5
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_list_offsets_topic(buf, pos, n, version)
            (x.timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(ListOffsetsRequest)
            x.timeout_ms = 0
            (x.replica_id, x.isolation_level) = _unpack_ib(buf, pos)
            pos += 5
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_list_offsets_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(ListOffsetsRequest)
            x.timeout_ms = 0
            (x.replica_id, x.isolation_level) = _unpack_ib(buf, pos)
            pos += 5
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_list_offsets_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsRequest)
            x.isolation_level = 0
            x.timeout_ms = 0
            (x.replica_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_list_offsets_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ListOffsetsRequest], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_ib(x.replica_id, x.isolation_level))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_list_offsets_topic(out, topics, version)
            w(_pack_ix(x.timeout_ms))
    elif version >= 6:
        for x in items:
            w(_pack_ib(x.replica_id, x.isolation_level))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_list_offsets_topic(out, topics, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_ib(x.replica_id, x.isolation_level))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_list_offsets_topic(out, topics, version)
    else:
        for x in items:
            w(_pack_i(x.replica_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_list_offsets_topic(out, topics, version)


ListOffsetsRequest.READ = _read_request
ListOffsetsRequest.WRITE = _write_request


class ListOffsetsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 2
    MIN_VERSION = 1
    MAX_VERSION = 11
    FLEXIBLE_VERSION = 6

    class ListOffsetsTopicResponse(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = [] if partitions is EMPTY else partitions

    class ListOffsetsPartitionResponse(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "timestamp",
            "offset",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.timestamp: int = timestamp
            self.offset: int = offset
            self.leader_epoch: int = leader_epoch

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = [] if topics is EMPTY else topics


def _read_response_list_offsets_partition_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsResponse.ListOffsetsPartitionResponse], int]:
    items: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = []
    if version >= 6:
        for _ in range(count):
            x = new(ListOffsetsResponse.ListOffsetsPartitionResponse)
            (x.partition_index, x.error_code, x.timestamp, x.offset, x.leader_epoch, tags) = _unpack_ihqqiB(buf, pos)
            pos += 27
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(ListOffsetsResponse.ListOffsetsPartitionResponse)
            (x.partition_index, x.error_code, x.timestamp, x.offset, x.leader_epoch) = _unpack_ihqqi(buf, pos)
            pos += 26
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsResponse.ListOffsetsPartitionResponse)
            x.leader_epoch = -1
            (x.partition_index, x.error_code, x.timestamp, x.offset) = _unpack_ihqq(buf, pos)
            pos += 22
            items.append(x)
    return items, pos


def _write_response_list_offsets_partition_response(out: Out, items: Sequence[ListOffsetsResponse.ListOffsetsPartitionResponse], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(_pack_ihqqix(x.partition_index, x.error_code, x.timestamp, x.offset, x.leader_epoch))
    elif version >= 4:
        for x in items:
            w(_pack_ihqqi(x.partition_index, x.error_code, x.timestamp, x.offset, x.leader_epoch))
    else:
        for x in items:
            w(_pack_ihqq(x.partition_index, x.error_code, x.timestamp, x.offset))


def _read_response_list_offsets_topic_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsResponse.ListOffsetsTopicResponse], int]:
    items: list[ListOffsetsResponse.ListOffsetsTopicResponse] = []
    if version >= 6:
        for _ in range(count):
            x = new(ListOffsetsResponse.ListOffsetsTopicResponse)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_list_offsets_partition_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsResponse.ListOffsetsTopicResponse)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_list_offsets_partition_response(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_list_offsets_topic_response(out: Out, items: Sequence[ListOffsetsResponse.ListOffsetsTopicResponse], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_list_offsets_partition_response(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_list_offsets_partition_response(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListOffsetsResponse], int]:
    items: list[ListOffsetsResponse] = []
    if version >= 6:
        for _ in range(count):
            x = new(ListOffsetsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_list_offsets_topic_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(ListOffsetsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_list_offsets_topic_response(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListOffsetsResponse)
            x.throttle_time_ms = 0
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_list_offsets_topic_response(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ListOffsetsResponse], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_list_offsets_topic_response(out, topics, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_list_offsets_topic_response(out, topics, version)
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_list_offsets_topic_response(out, topics, version)


ListOffsetsResponse.READ = _read_response
ListOffsetsResponse.WRITE = _write_response
