"""Written by `python -m heirlog.protocol.generator` from specs/messages/assign_replicas_to_dirs.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ihB = _Shape(">ihB").unpack_from
_pack_ihx = _Shape(">ihx").pack
_unpack_iq = _Shape(">iq").unpack_from
_pack_iq = _Shape(">iq").pack
_pack_ix = _Shape(">ix").pack


class AssignReplicasToDirsRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "directories",
    )
    API_KEY = 73
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class DirectoryData(Struct):
        __slots__ = (
            "id",
            "topics",
        )

        def __init__(
            self,
            *,
            id: bytes = ZERO_UUID,
            topics: list[AssignReplicasToDirsRequest.TopicData] = EMPTY,
        ) -> None:
            self.id: bytes = id
            self.topics: list[AssignReplicasToDirsRequest.TopicData] = [] if topics is EMPTY else topics

    class TopicData(Struct):
        __slots__ = (
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partitions: list[AssignReplicasToDirsRequest.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
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
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.directories: list[AssignReplicasToDirsRequest.DirectoryData] = [] if directories is EMPTY else directories


def _read_request_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsRequest.PartitionData], int]:
    items: list[AssignReplicasToDirsRequest.PartitionData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AssignReplicasToDirsRequest.PartitionData)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_partition_data(out: Out, items: Sequence[AssignReplicasToDirsRequest.PartitionData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ix(x.partition_index))


def _read_request_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsRequest.TopicData], int]:
    items: list[AssignReplicasToDirsRequest.TopicData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AssignReplicasToDirsRequest.TopicData)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_request_partition_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_data(out: Out, items: Sequence[AssignReplicasToDirsRequest.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_partition_data(out, partitions, version)
        w(b"\0")


def _read_request_directory_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsRequest.DirectoryData], int]:
    items: list[AssignReplicasToDirsRequest.DirectoryData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(AssignReplicasToDirsRequest.DirectoryData)
        (x.id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_directory_data(out: Out, items: Sequence[AssignReplicasToDirsRequest.DirectoryData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.id))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_data(out, topics, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsRequest], int]:
    items: list[AssignReplicasToDirsRequest] = []
    for _ in range(count):
        x = new(AssignReplicasToDirsRequest)
        (x.broker_id, x.broker_epoch) = _unpack_iq(buf, pos)
        pos += 12
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Directories")
        x.directories, pos = _read_request_directory_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[AssignReplicasToDirsRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iq(x.broker_id, x.broker_epoch))
        directories = x.directories
        n = len(directories) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if directories:
            _write_request_directory_data(out, directories, version)
        w(b"\0")


AssignReplicasToDirsRequest.READ = _read_request
AssignReplicasToDirsRequest.WRITE = _write_request


class AssignReplicasToDirsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "directories",
    )
    API_KEY = 73
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class DirectoryData(Struct):
        __slots__ = (
            "id",
            "topics",
        )

        def __init__(
            self,
            *,
            id: bytes = ZERO_UUID,
            topics: list[AssignReplicasToDirsResponse.TopicData] = EMPTY,
        ) -> None:
            self.id: bytes = id
            self.topics: list[AssignReplicasToDirsResponse.TopicData] = [] if topics is EMPTY else topics

    class TopicData(Struct):
        __slots__ = (
            "topic_id",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.partitions: list[AssignReplicasToDirsResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
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
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.directories: list[AssignReplicasToDirsResponse.DirectoryData] = [] if directories is EMPTY else directories


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsResponse.PartitionData], int]:
    items: list[AssignReplicasToDirsResponse.PartitionData] = []
    for _ in range(count):
        x = new(AssignReplicasToDirsResponse.PartitionData)
        (x.partition_index, x.error_code, tags) = _unpack_ihB(buf, pos)
        pos += 7
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[AssignReplicasToDirsResponse.PartitionData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ihx(x.partition_index, x.error_code))


def _read_response_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsResponse.TopicData], int]:
    items: list[AssignReplicasToDirsResponse.TopicData] = []
    for _ in range(count):
        x = new(AssignReplicasToDirsResponse.TopicData)
        (x.topic_id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_partition_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_topic_data(out: Out, items: Sequence[AssignReplicasToDirsResponse.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.topic_id))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_data(out, partitions, version)
        w(b"\0")


def _read_response_directory_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsResponse.DirectoryData], int]:
    items: list[AssignReplicasToDirsResponse.DirectoryData] = []
    for _ in range(count):
        x = new(AssignReplicasToDirsResponse.DirectoryData)
        (x.id,) = _unpack_u(buf, pos)
        pos += 16
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_response_topic_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_directory_data(out: Out, items: Sequence[AssignReplicasToDirsResponse.DirectoryData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_u(x.id))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_response_topic_data(out, topics, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AssignReplicasToDirsResponse], int]:
    items: list[AssignReplicasToDirsResponse] = []
    for _ in range(count):
        x = new(AssignReplicasToDirsResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Directories")
        x.directories, pos = _read_response_directory_data(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[AssignReplicasToDirsResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        directories = x.directories
        n = len(directories) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if directories:
            _write_response_directory_data(out, directories, version)
        w(b"\0")


AssignReplicasToDirsResponse.READ = _read_response
AssignReplicasToDirsResponse.WRITE = _write_response
