"""Written by `python -m heirlog.protocol.generator` from specs/messages/offset_for_leader_epoch.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_hiiq = _Shape(">hiiq").unpack_from
_pack_hiiq = _Shape(">hiiq").pack
_unpack_hiiqB = _Shape(">hiiqB").unpack_from
_pack_hiiqx = _Shape(">hiiqx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iii = _Shape(">iii").unpack_from
_pack_iii = _Shape(">iii").pack
_unpack_iiiB = _Shape(">iiiB").unpack_from
_pack_iiix = _Shape(">iiix").pack


class OffsetForLeaderEpochRequest(Message):
    __slots__ = (
        "replica_id",
        "topics",
    )
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    class OffsetForLeaderTopic(Struct):
        __slots__ = (
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = EMPTY,
        ) -> None:
            self.topic: str = topic
            self.partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = [] if partitions is EMPTY else partitions

    class OffsetForLeaderPartition(Struct):
        __slots__ = (
            "partition",
            "current_leader_epoch",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
        ) -> None:
            self.partition: int = partition
            self.current_leader_epoch: int = current_leader_epoch
            self.leader_epoch: int = leader_epoch

    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = EMPTY,
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = [] if topics is EMPTY else topics


def _read_request_offset_for_leader_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition], int]:
    items: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = []
    if count > 1:
        p.spend(count)
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest.OffsetForLeaderPartition)
            (x.partition, x.current_leader_epoch, x.leader_epoch, tags) = _unpack_iiiB(buf, pos)
            pos += 13
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest.OffsetForLeaderPartition)
            (x.partition, x.current_leader_epoch, x.leader_epoch) = _unpack_iii(buf, pos)
            pos += 12
            items.append(x)
    return items, pos


def _write_request_offset_for_leader_partition(out: Out, items: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderPartition], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_iiix(x.partition, x.current_leader_epoch, x.leader_epoch))
    else:
        for x in items:
            w(_pack_iii(x.partition, x.current_leader_epoch, x.leader_epoch))


def _read_request_offset_for_leader_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic], int]:
    items: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest.OffsetForLeaderTopic)
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_offset_for_leader_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest.OffsetForLeaderTopic)
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_offset_for_leader_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_offset_for_leader_topic(out: Out, items: Sequence[OffsetForLeaderEpochRequest.OffsetForLeaderTopic], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_offset_for_leader_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_offset_for_leader_partition(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochRequest], int]:
    items: list[OffsetForLeaderEpochRequest] = []
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest)
            (x.replica_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_for_leader_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest)
            (x.replica_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_for_leader_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochRequest)
            x.replica_id = -2
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_for_leader_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[OffsetForLeaderEpochRequest], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_i(x.replica_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_offset_for_leader_topic(out, topics, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(_pack_i(x.replica_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_for_leader_topic(out, topics, version)
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_for_leader_topic(out, topics, version)


OffsetForLeaderEpochRequest.READ = _read_request
OffsetForLeaderEpochRequest.WRITE = _write_request


class OffsetForLeaderEpochResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 23
    MIN_VERSION = 2
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    class OffsetForLeaderTopicResult(Struct):
        __slots__ = (
            "topic",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = EMPTY,
        ) -> None:
            self.topic: str = topic
            self.partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = [] if partitions is EMPTY else partitions

    class EpochEndOffset(Struct):
        __slots__ = (
            "error_code",
            "partition",
            "leader_epoch",
            "end_offset",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
        ) -> None:
            self.error_code: int = error_code
            self.partition: int = partition
            self.leader_epoch: int = leader_epoch
            self.end_offset: int = end_offset

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = [] if topics is EMPTY else topics


def _read_response_epoch_end_offset(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochResponse.EpochEndOffset], int]:
    items: list[OffsetForLeaderEpochResponse.EpochEndOffset] = []
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse.EpochEndOffset)
            (x.error_code, x.partition, x.leader_epoch, x.end_offset, tags) = _unpack_hiiqB(buf, pos)
            pos += 19
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse.EpochEndOffset)
            (x.error_code, x.partition, x.leader_epoch, x.end_offset) = _unpack_hiiq(buf, pos)
            pos += 18
            items.append(x)
    return items, pos


def _write_response_epoch_end_offset(out: Out, items: Sequence[OffsetForLeaderEpochResponse.EpochEndOffset], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_hiiqx(x.error_code, x.partition, x.leader_epoch, x.end_offset))
    else:
        for x in items:
            w(_pack_hiiq(x.error_code, x.partition, x.leader_epoch, x.end_offset))


def _read_response_offset_for_leader_topic_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult], int]:
    items: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = []
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult)
            x.topic, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_epoch_end_offset(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult)
            x.topic, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_epoch_end_offset(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_offset_for_leader_topic_result(out: Out, items: Sequence[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.topic))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_epoch_end_offset(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_epoch_end_offset(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetForLeaderEpochResponse], int]:
    items: list[OffsetForLeaderEpochResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_for_leader_topic_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetForLeaderEpochResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_for_leader_topic_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[OffsetForLeaderEpochResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_offset_for_leader_topic_result(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_for_leader_topic_result(out, topics, version)


OffsetForLeaderEpochResponse.READ = _read_response
OffsetForLeaderEpochResponse.WRITE = _write_response
