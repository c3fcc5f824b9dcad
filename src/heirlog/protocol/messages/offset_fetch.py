"""Written by `python -m heirlog.protocol.generator` from specs/messages/offset_fetch.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_oB = _Shape(">?B").unpack_from
_pack_ox = _Shape(">?x").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_unpack_iqi = _Shape(">iqi").unpack_from
_pack_iqi = _Shape(">iqi").pack


class OffsetFetchRequest(Message):
    __slots__ = (
        "group_id",
        "topics",
        "groups",
        "require_stable",
    )
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_VERSION = 6

    class OffsetFetchRequestTopic(Struct):
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

    class OffsetFetchRequestGroup(Struct):
        __slots__ = (
            "group_id",
            "member_id",
            "member_epoch",
            "topics",
        )

        def __init__(
            self,
            *,
            group_id: str = "",
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = EMPTY,
        ) -> None:
            self.group_id: str = group_id
            self.member_id: str | None = member_id
            self.member_epoch: int = member_epoch
            self.topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = [] if topics is EMPTY else topics

    class OffsetFetchRequestTopics(Struct):
        __slots__ = (
            "name",
            "topic_id",
            "partition_indexes",
        )

        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ZERO_UUID,
            partition_indexes: list[int] = EMPTY,
        ) -> None:
            self.name: str = name
            self.topic_id: bytes = topic_id
            self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = EMPTY,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = EMPTY,
        require_stable: bool = False,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = [] if topics is EMPTY else topics
        self.groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = [] if groups is EMPTY else groups
        self.require_stable: bool = require_stable


def _read_request_offset_fetch_request_topics(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchRequest.OffsetFetchRequestTopics], int]:
    items: list[OffsetFetchRequest.OffsetFetchRequestTopics] = []
    if count > 1:
        p.spend(count)
    if version >= 10:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestTopics)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
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
    else:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestTopics)
            x.topic_id = ZERO_UUID
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


def _write_request_offset_fetch_request_topics(out: Out, items: Sequence[OffsetFetchRequest.OffsetFetchRequestTopics], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_u(x.topic_id))
            partition_indexes = x.partition_indexes
            n = len(partition_indexes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_indexes:
                w(p.int32s(partition_indexes))
            w(b"\0")
    else:
        for x in items:
            w(p.compact_string(x.name))
            partition_indexes = x.partition_indexes
            n = len(partition_indexes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_indexes:
                w(p.int32s(partition_indexes))
            w(b"\0")


def _read_request_offset_fetch_request_group(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchRequest.OffsetFetchRequestGroup], int]:
    items: list[OffsetFetchRequest.OffsetFetchRequestGroup] = []
    if count > 1:
        p.spend(count)
    if version >= 9:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestGroup)
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.member_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.member_epoch,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_offset_fetch_request_topics(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestGroup)
            x.member_id = None
            x.member_epoch = -1
            x.group_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_offset_fetch_request_topics(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request_offset_fetch_request_group(out: Out, items: Sequence[OffsetFetchRequest.OffsetFetchRequestGroup], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(p.compact_string(x.group_id))
            w(p.compact_nullable_string(x.member_id))
            w(_pack_i(x.member_epoch))
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_offset_fetch_request_topics(out, topics, version)
            w(b"\0")
    else:
        for x in items:
            w(p.compact_string(x.group_id))
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_offset_fetch_request_topics(out, topics, version)
            w(b"\0")


def _read_request_offset_fetch_request_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchRequest.OffsetFetchRequestTopic], int]:
    items: list[OffsetFetchRequest.OffsetFetchRequestTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 6:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestTopic)
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
    else:
        for _ in range(count):
            x = new(OffsetFetchRequest.OffsetFetchRequestTopic)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("PartitionIndexes")
            x.partition_indexes, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_offset_fetch_request_topic(out: Out, items: Sequence[OffsetFetchRequest.OffsetFetchRequestTopic], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.name))
            partition_indexes = x.partition_indexes
            n = len(partition_indexes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partition_indexes:
                w(p.int32s(partition_indexes))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partition_indexes = x.partition_indexes
            w(_pack_i(len(partition_indexes)))
            if partition_indexes:
                w(p.int32s(partition_indexes))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchRequest], int]:
    items: list[OffsetFetchRequest] = []
    if version >= 8:
        for _ in range(count):
            x = new(OffsetFetchRequest)
            x.group_id = ""
            x.topics = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_request_offset_fetch_request_group(buf, pos, n, version)
            (x.require_stable, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(OffsetFetchRequest)
            x.groups = []
            x.group_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_offset_fetch_request_topic(buf, pos, n, version)
            (x.require_stable, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(OffsetFetchRequest)
            x.groups = []
            x.require_stable = False
            x.group_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_offset_fetch_request_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(OffsetFetchRequest)
            x.groups = []
            x.require_stable = False
            x.group_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_offset_fetch_request_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchRequest)
            x.groups = []
            x.require_stable = False
            x.group_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_offset_fetch_request_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[OffsetFetchRequest], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            groups = x.groups
            n = len(groups) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups:
                _write_request_offset_fetch_request_group(out, groups, version)
            w(_pack_ox(x.require_stable))
    elif version >= 7:
        for x in items:
            w(p.compact_string(x.group_id))
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_offset_fetch_request_topic(out, topics, version)
            w(_pack_ox(x.require_stable))
    elif version >= 6:
        for x in items:
            w(p.compact_string(x.group_id))
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_offset_fetch_request_topic(out, topics, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(p.string(x.group_id))
            topics = x.topics
            if topics is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topics)))
                if topics:
                    _write_request_offset_fetch_request_topic(out, topics, version)
    else:
        for x in items:
            w(p.string(x.group_id))
            topics_ = p.require(x.topics, "Topics")
            topics = topics_
            w(_pack_i(len(topics)))
            if topics:
                _write_request_offset_fetch_request_topic(out, topics, version)


OffsetFetchRequest.READ = _read_request
OffsetFetchRequest.WRITE = _write_request


class OffsetFetchResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "error_code",
        "groups",
    )
    API_KEY = 9
    MIN_VERSION = 1
    MAX_VERSION = 10
    FLEXIBLE_VERSION = 6

    class OffsetFetchResponseTopic(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = [] if partitions is EMPTY else partitions

    class OffsetFetchResponsePartition(Struct):
        __slots__ = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "metadata",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = None,
            error_code: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.committed_offset: int = committed_offset
            self.committed_leader_epoch: int = committed_leader_epoch
            self.metadata: str | None = metadata
            self.error_code: int = error_code

    class OffsetFetchResponseGroup(Struct):
        __slots__ = (
            "group_id",
            "topics",
            "error_code",
        )

        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = EMPTY,
            error_code: int = 0,
        ) -> None:
            self.group_id: str = group_id
            self.topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = [] if topics is EMPTY else topics
            self.error_code: int = error_code

    class OffsetFetchResponseTopics(Struct):
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
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = EMPTY,
        ) -> None:
            self.name: str = name
            self.topic_id: bytes = topic_id
            self.partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = [] if partitions is EMPTY else partitions

    class OffsetFetchResponsePartitions(Struct):
        __slots__ = (
            "partition_index",
            "committed_offset",
            "committed_leader_epoch",
            "metadata",
            "error_code",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = None,
            error_code: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.committed_offset: int = committed_offset
            self.committed_leader_epoch: int = committed_leader_epoch
            self.metadata: str | None = metadata
            self.error_code: int = error_code

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = EMPTY,
        error_code: int = 0,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = [] if groups is EMPTY else groups


def _read_response_offset_fetch_response_partitions(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse.OffsetFetchResponsePartitions], int]:
    items: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = []
    for _ in range(count):
        x = new(OffsetFetchResponse.OffsetFetchResponsePartitions)
        (x.partition_index, x.committed_offset, x.committed_leader_epoch) = _unpack_iqi(buf, pos)
        pos += 16
        x.metadata, pos = p.read_compact_nullable_string(buf, pos)
        (x.error_code, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_offset_fetch_response_partitions(out: Out, items: Sequence[OffsetFetchResponse.OffsetFetchResponsePartitions], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqi(x.partition_index, x.committed_offset, x.committed_leader_epoch))
        w(p.compact_nullable_string(x.metadata))
        w(_pack_hx(x.error_code))


def _read_response_offset_fetch_response_topics(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse.OffsetFetchResponseTopics], int]:
    items: list[OffsetFetchResponse.OffsetFetchResponseTopics] = []
    if version >= 10:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponseTopics)
            x.name = ""
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_fetch_response_partitions(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponseTopics)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_fetch_response_partitions(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response_offset_fetch_response_topics(out: Out, items: Sequence[OffsetFetchResponse.OffsetFetchResponseTopics], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_u(x.topic_id))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_offset_fetch_response_partitions(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_offset_fetch_response_partitions(out, partitions, version)
            w(b"\0")


def _read_response_offset_fetch_response_group(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse.OffsetFetchResponseGroup], int]:
    items: list[OffsetFetchResponse.OffsetFetchResponseGroup] = []
    for _ in range(count):
        x = new(OffsetFetchResponse.OffsetFetchResponseGroup)
        x.group_id, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_offset_fetch_response_topics(buf, pos, n, version)
        (x.error_code, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_offset_fetch_response_group(out: Out, items: Sequence[OffsetFetchResponse.OffsetFetchResponseGroup], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.group_id))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_offset_fetch_response_topics(out, topics, version)
        w(_pack_hx(x.error_code))


def _read_response_offset_fetch_response_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse.OffsetFetchResponsePartition], int]:
    items: list[OffsetFetchResponse.OffsetFetchResponsePartition] = []
    if version >= 6:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponsePartition)
            (x.partition_index, x.committed_offset, x.committed_leader_epoch) = _unpack_iqi(buf, pos)
            pos += 16
            x.metadata, pos = p.read_compact_nullable_string(buf, pos)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponsePartition)
            (x.partition_index, x.committed_offset, x.committed_leader_epoch) = _unpack_iqi(buf, pos)
            pos += 16
            x.metadata, pos = p.read_nullable_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponsePartition)
            x.committed_leader_epoch = -1
            (x.partition_index, x.committed_offset) = _unpack_iq(buf, pos)
            pos += 12
            x.metadata, pos = p.read_nullable_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_offset_fetch_response_partition(out: Out, items: Sequence[OffsetFetchResponse.OffsetFetchResponsePartition], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(_pack_iqi(x.partition_index, x.committed_offset, x.committed_leader_epoch))
            w(p.compact_nullable_string(x.metadata))
            w(_pack_hx(x.error_code))
    elif version >= 5:
        for x in items:
            w(_pack_iqi(x.partition_index, x.committed_offset, x.committed_leader_epoch))
            w(p.nullable_string(x.metadata))
            w(_pack_h(x.error_code))
    else:
        for x in items:
            w(_pack_iq(x.partition_index, x.committed_offset))
            w(p.nullable_string(x.metadata))
            w(_pack_h(x.error_code))


def _read_response_offset_fetch_response_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse.OffsetFetchResponseTopic], int]:
    items: list[OffsetFetchResponse.OffsetFetchResponseTopic] = []
    if version >= 6:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponseTopic)
            x.name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_fetch_response_partition(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchResponse.OffsetFetchResponseTopic)
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_offset_fetch_response_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_offset_fetch_response_topic(out: Out, items: Sequence[OffsetFetchResponse.OffsetFetchResponseTopic], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_offset_fetch_response_partition(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_offset_fetch_response_partition(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetFetchResponse], int]:
    items: list[OffsetFetchResponse] = []
    if version >= 8:
        for _ in range(count):
            x = new(OffsetFetchResponse)
            x.topics = []
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_offset_fetch_response_group(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(OffsetFetchResponse)
            x.groups = []
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_fetch_response_topic(buf, pos, n, version)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(OffsetFetchResponse)
            x.groups = []
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_fetch_response_topic(buf, pos, n, version)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(OffsetFetchResponse)
            x.throttle_time_ms = 0
            x.groups = []
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_fetch_response_topic(buf, pos, n, version)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    else:
        for _ in range(count):
            x = new(OffsetFetchResponse)
            x.throttle_time_ms = 0
            x.error_code = 0
            x.groups = []
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_offset_fetch_response_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[OffsetFetchResponse], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            groups = x.groups
            n = len(groups) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups:
                _write_response_offset_fetch_response_group(out, groups, version)
            w(b"\0")
    elif version >= 6:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_offset_fetch_response_topic(out, topics, version)
            w(_pack_hx(x.error_code))
    elif version >= 3:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_fetch_response_topic(out, topics, version)
            w(_pack_h(x.error_code))
    elif version >= 2:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_fetch_response_topic(out, topics, version)
            w(_pack_h(x.error_code))
    else:
        for x in items:
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_offset_fetch_response_topic(out, topics, version)


OffsetFetchResponse.READ = _read_response
OffsetFetchResponse.WRITE = _write_response
