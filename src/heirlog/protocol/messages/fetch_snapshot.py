"""Written by `python -m heirlog.protocol.generator` from specs/messages/fetch_snapshot.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape
from typing import Final

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Records, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_HB = _Shape(">HB").unpack_from
_pack_Hx = _Shape(">Hx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ii = _Shape(">ii").unpack_from
_pack_ii = _Shape(">ii").pack
_unpack_iiB = _Shape(">iiB").unpack_from
_pack_iix = _Shape(">iix").pack
_pack_q = _Shape(">q").pack
_unpack_qB = _Shape(">qB").unpack_from
_unpack_qiB = _Shape(">qiB").unpack_from
_pack_qix = _Shape(">qix").pack
_unpack_qq = _Shape(">qq").unpack_from
_pack_qq = _Shape(">qq").pack
_pack_qx = _Shape(">qx").pack


class FetchSnapshotRequest(Message):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "max_bytes",
        "topics",
    )
    API_KEY = 59
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class TopicSnapshot(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[FetchSnapshotRequest.PartitionSnapshot] = [] if partitions is EMPTY else partitions

    class PartitionSnapshot(Struct):
        __slots__ = (
            "partition",
            "current_leader_epoch",
            "snapshot_id",
            "position",
            "replica_directory_id",
        )

        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId | None = None,
            position: int = 0,
            replica_directory_id: bytes = ZERO_UUID,
        ) -> None:
            self.partition: int = partition
            self.current_leader_epoch: int = current_leader_epoch
            self.snapshot_id: FetchSnapshotRequest.SnapshotId = FetchSnapshotRequest.SnapshotId() if snapshot_id is None else snapshot_id
            self.position: int = position
            self.replica_directory_id: bytes = replica_directory_id

    class SnapshotId(Struct):
        __slots__ = (
            "end_offset",
            "epoch",
        )

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset: int = end_offset
            self.epoch: int = epoch

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = EMPTY,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.max_bytes: int = max_bytes
        self.topics: list[FetchSnapshotRequest.TopicSnapshot] = [] if topics is EMPTY else topics


def _read_request_snapshot_id(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotRequest.SnapshotId], int]:
    items: list[FetchSnapshotRequest.SnapshotId] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(FetchSnapshotRequest.SnapshotId)
        (x.end_offset, x.epoch, tags) = _unpack_qiB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_snapshot_id(out: Out, items: Sequence[FetchSnapshotRequest.SnapshotId], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_qix(x.end_offset, x.epoch))


def _read_request_partition_snapshot(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotRequest.PartitionSnapshot], int]:
    items: list[FetchSnapshotRequest.PartitionSnapshot] = []
    if count > 1:
        p.spend(count)
    if version >= 1:
        for _ in range(count):
            x = new(FetchSnapshotRequest.PartitionSnapshot)
            x.replica_directory_id = ZERO_UUID
            (x.partition, x.current_leader_epoch) = _unpack_ii(buf, pos)
            pos += 8
            ((x.snapshot_id,), pos) = _read_request_snapshot_id(buf, pos, 1, version)
            (x.position, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.replica_directory_id,) = _unpack_u(buf, pos)
                        pos += 16
                        if pos != end:
                            raise p.bad_tag("ReplicaDirectoryId")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchSnapshotRequest.PartitionSnapshot)
            x.replica_directory_id = ZERO_UUID
            (x.partition, x.current_leader_epoch) = _unpack_ii(buf, pos)
            pos += 8
            ((x.snapshot_id,), pos) = _read_request_snapshot_id(buf, pos, 1, version)
            (x.position, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request_partition_snapshot(out: Out, items: Sequence[FetchSnapshotRequest.PartitionSnapshot], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 1:
        for x in items:
            w(_pack_ii(x.partition, x.current_leader_epoch))
            _write_request_snapshot_id(out, (x.snapshot_id,), version)
            w(_pack_q(x.position))
            if x.replica_directory_id != ZERO_UUID:
                tagged = []
                if x.replica_directory_id != ZERO_UUID:
                    inner = Out()
                    inner.small.append(_pack_u(x.replica_directory_id))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(_pack_ii(x.partition, x.current_leader_epoch))
            _write_request_snapshot_id(out, (x.snapshot_id,), version)
            w(_pack_qx(x.position))


def _read_request_topic_snapshot(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotRequest.TopicSnapshot], int]:
    items: list[FetchSnapshotRequest.TopicSnapshot] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(FetchSnapshotRequest.TopicSnapshot)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_request_partition_snapshot(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_topic_snapshot(out: Out, items: Sequence[FetchSnapshotRequest.TopicSnapshot], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_partition_snapshot(out, partitions, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotRequest], int]:
    items: list[FetchSnapshotRequest] = []
    for _ in range(count):
        x = new(FetchSnapshotRequest)
        x.cluster_id = None
        (x.replica_id, x.max_bytes) = _unpack_ii(buf, pos)
        pos += 8
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Topics")
        x.topics, pos = _read_request_topic_snapshot(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 0:
                    x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
                    if pos != end:
                        raise p.bad_tag("ClusterId")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[FetchSnapshotRequest], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(_pack_ii(x.replica_id, x.max_bytes))
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_snapshot(out, topics, version)
        if x.cluster_id is not None:
            tagged = []
            if x.cluster_id is not None:
                inner = Out()
                inner.small.append(p.compact_string(x.cluster_id))
                tagged.append((0, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


FetchSnapshotRequest.READ = _read_request
FetchSnapshotRequest.WRITE = _write_request


class FetchSnapshotResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "topics",
        "node_endpoints",
    )
    API_KEY = 59
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class TopicSnapshot(Struct):
        __slots__ = (
            "name",
            "partitions",
        )

        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = EMPTY,
        ) -> None:
            self.name: str = name
            self.partitions: list[FetchSnapshotResponse.PartitionSnapshot] = [] if partitions is EMPTY else partitions

    class PartitionSnapshot(Struct):
        __slots__ = (
            "index",
            "error_code",
            "snapshot_id",
            "current_leader",
            "size",
            "position",
            "unaligned_records",
        )

        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId | None = None,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch | None = None,
            size: int = 0,
            position: int = 0,
            unaligned_records: Records = b"",
        ) -> None:
            self.index: int = index
            self.error_code: int = error_code
            self.snapshot_id: FetchSnapshotResponse.SnapshotId = FetchSnapshotResponse.SnapshotId() if snapshot_id is None else snapshot_id
            self.current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH if current_leader is None else current_leader
            self.size: int = size
            self.position: int = position
            self.unaligned_records: Records = unaligned_records

    class SnapshotId(Struct):
        __slots__ = (
            "end_offset",
            "epoch",
        )

        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None:
            self.end_offset: int = end_offset
            self.epoch: int = epoch

    class LeaderIdAndEpoch(Struct):
        __slots__ = (
            "leader_id",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch

    class NodeEndpoint(Struct):
        __slots__ = (
            "node_id",
            "host",
            "port",
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None:
            self.node_id: int = node_id
            self.host: str = host
            self.port: int = port

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = EMPTY,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[FetchSnapshotResponse.TopicSnapshot] = [] if topics is EMPTY else topics
        self.node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


_DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH: Final = p.frozen_default(FetchSnapshotResponse.LeaderIdAndEpoch)


def _read_response_node_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse.NodeEndpoint], int]:
    items: list[FetchSnapshotResponse.NodeEndpoint] = []
    for _ in range(count):
        x = new(FetchSnapshotResponse.NodeEndpoint)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_node_endpoint(out: Out, items: Sequence[FetchSnapshotResponse.NodeEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_response_leader_id_and_epoch(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse.LeaderIdAndEpoch], int]:
    items: list[FetchSnapshotResponse.LeaderIdAndEpoch] = []
    for _ in range(count):
        x = new(FetchSnapshotResponse.LeaderIdAndEpoch)
        (x.leader_id, x.leader_epoch, tags) = _unpack_iiB(buf, pos)
        pos += 9
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_leader_id_and_epoch(out: Out, items: Sequence[FetchSnapshotResponse.LeaderIdAndEpoch], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iix(x.leader_id, x.leader_epoch))


def _read_response_snapshot_id(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse.SnapshotId], int]:
    items: list[FetchSnapshotResponse.SnapshotId] = []
    for _ in range(count):
        x = new(FetchSnapshotResponse.SnapshotId)
        (x.end_offset, x.epoch, tags) = _unpack_qiB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_snapshot_id(out: Out, items: Sequence[FetchSnapshotResponse.SnapshotId], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_qix(x.end_offset, x.epoch))


def _read_response_partition_snapshot(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse.PartitionSnapshot], int]:
    items: list[FetchSnapshotResponse.PartitionSnapshot] = []
    for _ in range(count):
        x = new(FetchSnapshotResponse.PartitionSnapshot)
        x.current_leader = _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH
        (x.index, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        ((x.snapshot_id,), pos) = _read_response_snapshot_id(buf, pos, 1, version)
        (x.size, x.position) = _unpack_qq(buf, pos)
        pos += 16
        view, pos = p.read_compact_nullable_records(buf, pos)
        if view is None:
            raise p.null("UnalignedRecords")
        x.unaligned_records = view
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 0:
                    ((x.current_leader,), pos) = _read_response_leader_id_and_epoch(buf, pos, 1, version)
                    if pos != end:
                        raise p.bad_tag("CurrentLeader")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_response_partition_snapshot(out: Out, items: Sequence[FetchSnapshotResponse.PartitionSnapshot], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(_pack_ih(x.index, x.error_code))
        _write_response_snapshot_id(out, (x.snapshot_id,), version)
        w(_pack_qq(x.size, x.position))
        p.write_compact_nullable_records(out, x.unaligned_records)
        if (x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH):
            tagged = []
            if x.current_leader is not _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH and x.current_leader != _DEFAULT_RESPONSE_LEADER_ID_AND_EPOCH:
                inner = Out()
                _write_response_leader_id_and_epoch(inner, (x.current_leader,), version)
                tagged.append((0, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


def _read_response_topic_snapshot(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse.TopicSnapshot], int]:
    items: list[FetchSnapshotResponse.TopicSnapshot] = []
    for _ in range(count):
        x = new(FetchSnapshotResponse.TopicSnapshot)
        x.name, pos = p.read_compact_string(buf, pos)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Partitions")
        x.partitions, pos = _read_response_partition_snapshot(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_topic_snapshot(out: Out, items: Sequence[FetchSnapshotResponse.TopicSnapshot], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_snapshot(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FetchSnapshotResponse], int]:
    items: list[FetchSnapshotResponse] = []
    if version >= 1:
        for _ in range(count):
            x = new(FetchSnapshotResponse)
            x.node_endpoints = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_topic_snapshot(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("NodeEndpoints")
                        x.node_endpoints, pos = _read_response_node_endpoint(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("NodeEndpoints")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(FetchSnapshotResponse)
            x.node_endpoints = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_topic_snapshot(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[FetchSnapshotResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_topic_snapshot(out, topics, version)
            if x.node_endpoints:
                tagged = []
                if x.node_endpoints:
                    inner = Out()
                    node_endpoints = x.node_endpoints
                    n = len(node_endpoints) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if node_endpoints:
                        _write_response_node_endpoint(inner, node_endpoints, version)
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_topic_snapshot(out, topics, version)
            w(b"\0")


FetchSnapshotResponse.READ = _read_response
FetchSnapshotResponse.WRITE = _write_response
