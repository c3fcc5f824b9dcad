"""Written by `python -m heirlog.protocol.generator` from specs/messages/offset_commit.spec. Do not edit."""

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
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ihB = _Shape(">ihB").unpack_from
_pack_ihx = _Shape(">ihx").pack
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_unpack_iqi = _Shape(">iqi").unpack_from
_pack_iqi = _Shape(">iqi").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class OffsetCommitRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_VERSION = 8

    class OffsetCommitRequestTopic(Struct):
        __slots__ = (
            "name",
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO_UUID,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.topic_id: bytes = topic_id
            self.partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions

    class OffsetCommitRequestPartition(Struct):
        __slots__ = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "committed_metadata",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = None,
        ) -> None:
            self.partition_index: int = partition_index
            self.committed_offset: int = committed_offset
            self.committed_leader_epoch: int = committed_leader_epoch
            self.committed_metadata: str | None = committed_metadata

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = [] if topics is EMPTY else topics


def _read_request_offset_commit_request_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitRequest.OffsetCommitRequestPartition], int]:
    items: list[OffsetCommitRequest.OffsetCommitRequestPartition] = []
    if count > 1:
        p.spend(count)
    if version >= 8:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestPartition)
            (x.partition_index, x.committed_offset, x.committed_leader_epoch) = _unpack_iqi(buf, pos)
            pos += 16
            x.committed_metadata, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestPartition)
            (x.partition_index, x.committed_offset, x.committed_leader_epoch) = _unpack_iqi(buf, pos)
            pos += 16
            x.committed_metadata, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestPartition)
            x.committed_leader_epoch = -1
            (x.partition_index, x.committed_offset) = _unpack_iq(buf, pos)
            pos += 12
            x.committed_metadata, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request_offset_commit_request_partition(out: Out, items: Sequence[OffsetCommitRequest.OffsetCommitRequestPartition], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(_pack_iqi(x.partition_index, x.committed_offset, x.committed_leader_epoch))
            w(p.compact_nullable_string(x.committed_metadata))
            w(b"\0")
    elif version >= 6:
        for x in items:
            w(_pack_iqi(x.partition_index, x.committed_offset, x.committed_leader_epoch))
            w(p.nullable_string(x.committed_metadata))
    else:
        for x in items:
            w(_pack_iq(x.partition_index, x.committed_offset))
            w(p.nullable_string(x.committed_metadata))


def _read_request_offset_commit_request_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitRequest.OffsetCommitRequestTopic], int]:
    items: list[OffsetCommitRequest.OffsetCommitRequestTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 10:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestTopic)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_offset_commit_request_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_offset_commit_request_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitRequest.OffsetCommitRequestTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_offset_commit_request_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_offset_commit_request_topic(out: Out, items: Sequence[OffsetCommitRequest.OffsetCommitRequestTopic], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_offset_commit_request_partition(out, partitions, version)
            w(b"\0")
    elif version >= 8:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_offset_commit_request_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_offset_commit_request_partition(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitRequest], int]:
    items: list[OffsetCommitRequest] = []
    if version >= 8:
        for _ in range(count):
            x = new(OffsetCommitRequest)
            x.retention_time_ms = -1
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_commit_request_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(OffsetCommitRequest)
            x.retention_time_ms = -1
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_commit_request_topic(buf, pos, n, version)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(OffsetCommitRequest)
            x.group_instance_id = None
            x.retention_time_ms = -1
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_commit_request_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitRequest)
            x.group_instance_id = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id_or_member_epoch,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            (x.retention_time_ms,) = _unpack_q(buf, pos)
            pos += 8
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_commit_request_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[OffsetCommitRequest], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_i(x.generation_id_or_member_epoch))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_offset_commit_request_topic(out, topics, version)
            w(b"\0")
    elif version >= 7:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id_or_member_epoch))
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_commit_request_topic(out, topics, version)
    elif version >= 5:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id_or_member_epoch))
            w(p.string(x.member_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_commit_request_topic(out, topics, version)
    else:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id_or_member_epoch))
            w(p.string(x.member_id))
            w(_pack_q(x.retention_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_commit_request_topic(out, topics, version)


OffsetCommitRequest.READ = _read_request
OffsetCommitRequest.WRITE = _write_request


class OffsetCommitResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 8
    MIN_VERSION = 2
    MAX_VERSION = 10
    FLEXIBLE_VERSION = 8

    class OffsetCommitResponseTopic(Struct):
        __slots__ = (
            "name",
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO_UUID,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.topic_id: bytes = topic_id
            self.partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions

    class OffsetCommitResponsePartition(Struct):
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
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = [] if topics is EMPTY else topics


def _read_response_offset_commit_response_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitResponse.OffsetCommitResponsePartition], int]:
    items: list[OffsetCommitResponse.OffsetCommitResponsePartition] = []
    if version >= 8:
        for _ in range(count):
            x = new(OffsetCommitResponse.OffsetCommitResponsePartition)
            (x.partition_index, x.error_code, tags) = _unpack_ihB(buf, pos)
            pos += 7
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitResponse.OffsetCommitResponsePartition)
            (x.partition_index, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            items.append(x)
    return items, pos


def _write_response_offset_commit_response_partition(out: Out, items: Sequence[OffsetCommitResponse.OffsetCommitResponsePartition], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(_pack_ihx(x.partition_index, x.error_code))
    else:
        for x in items:
            w(_pack_ih(x.partition_index, x.error_code))


def _read_response_offset_commit_response_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitResponse.OffsetCommitResponseTopic], int]:
    items: list[OffsetCommitResponse.OffsetCommitResponseTopic] = []
    if version >= 10:
        for _ in range(count):
            x = new(OffsetCommitResponse.OffsetCommitResponseTopic)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_commit_response_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(OffsetCommitResponse.OffsetCommitResponseTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_commit_response_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitResponse.OffsetCommitResponseTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_commit_response_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_offset_commit_response_topic(out: Out, items: Sequence[OffsetCommitResponse.OffsetCommitResponseTopic], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_offset_commit_response_partition(out, partitions, version)
            w(b"\0")
    elif version >= 8:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_offset_commit_response_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_offset_commit_response_partition(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitResponse], int]:
    items: list[OffsetCommitResponse] = []
    if version >= 8:
        for _ in range(count):
            x = new(OffsetCommitResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_commit_response_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(OffsetCommitResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_commit_response_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetCommitResponse)
            x.throttle_time_ms = 0
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_commit_response_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[OffsetCommitResponse], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_offset_commit_response_topic(out, topics, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_commit_response_topic(out, topics, version)
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_commit_response_topic(out, topics, version)


OffsetCommitResponse.READ = _read_response
OffsetCommitResponse.WRITE = _write_response
