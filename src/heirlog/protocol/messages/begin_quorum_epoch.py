"""Written by `python -m heirlog.protocol.generator` from specs/messages/begin_quorum_epoch.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_HB = _Shape(">HB").unpack_from
_pack_Hx = _Shape(">Hx").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iuiiB = _Shape(">i16siiB").unpack_from
_pack_iuiix = _Shape(">i16siix").pack
_unpack_ihii = _Shape(">ihii").unpack_from
_pack_ihii = _Shape(">ihii").pack
_unpack_ihiiB = _Shape(">ihiiB").unpack_from
_pack_ihiix = _Shape(">ihiix").pack
_unpack_iii = _Shape(">iii").unpack_from
_pack_iii = _Shape(">iii").pack


class BeginQuorumEpochRequest(Message):
    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
        "leader_endpoints",
    )
    API_KEY = 53
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 1

    class TopicData(Struct):
        __slots__ = (
            "topic_name",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[BeginQuorumEpochRequest.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "voter_directory_id",
            "leader_id",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            voter_directory_id: bytes = ZERO_UUID,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.voter_directory_id: bytes = voter_directory_id
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch

    class LeaderEndpoint(Struct):
        __slots__ = (
            "name",
            "host",
            "port",
        )

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None:
            self.name: str = name
            self.host: str = host
            self.port: int = port

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequest.TopicData] = EMPTY,
        leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = EMPTY,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[BeginQuorumEpochRequest.TopicData] = [] if topics is EMPTY else topics
        self.leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = [] if leader_endpoints is EMPTY else leader_endpoints


def _read_request_leader_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochRequest.LeaderEndpoint], int]:
    items: list[BeginQuorumEpochRequest.LeaderEndpoint] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(BeginQuorumEpochRequest.LeaderEndpoint)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_leader_endpoint(out: Out, items: Sequence[BeginQuorumEpochRequest.LeaderEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_request_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochRequest.PartitionData], int]:
    items: list[BeginQuorumEpochRequest.PartitionData] = []
    if count > 1:
        p.spend(count)
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest.PartitionData)
            (x.partition_index, x.voter_directory_id, x.leader_id, x.leader_epoch, tags) = _unpack_iuiiB(buf, pos)
            pos += 29
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest.PartitionData)
            x.voter_directory_id = ZERO_UUID
            (x.partition_index, x.leader_id, x.leader_epoch) = _unpack_iii(buf, pos)
            pos += 12
            items.append(x)
    return items, pos


def _write_request_partition_data(out: Out, items: Sequence[BeginQuorumEpochRequest.PartitionData], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_iuiix(x.partition_index, x.voter_directory_id, x.leader_id, x.leader_epoch))
    else:
        for x in items:
            w(_pack_iii(x.partition_index, x.leader_id, x.leader_epoch))


def _read_request_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochRequest.TopicData], int]:
    items: list[BeginQuorumEpochRequest.TopicData] = []
    if count > 1:
        p.spend(count)
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest.TopicData)
            x.topic_name, pos = p.read_compact_string(buf, pos)
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
    else:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest.TopicData)
            x.topic_name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_request_partition_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_topic_data(out: Out, items: Sequence[BeginQuorumEpochRequest.TopicData], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(p.compact_string(x.topic_name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_request_partition_data(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic_name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_request_partition_data(out, partitions, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochRequest], int]:
    items: list[BeginQuorumEpochRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest)
            x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.voter_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_topic_data(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("LeaderEndpoints")
            x.leader_endpoints, pos = _read_request_leader_endpoint(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(BeginQuorumEpochRequest)
            x.voter_id = -1
            x.leader_endpoints = []
            x.cluster_id, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_topic_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[BeginQuorumEpochRequest], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(p.compact_nullable_string(x.cluster_id))
            w(_pack_i(x.voter_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_topic_data(out, topics, version)
            leader_endpoints = x.leader_endpoints
            n = len(leader_endpoints) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if leader_endpoints:
                _write_request_leader_endpoint(out, leader_endpoints, version)
            w(b"\0")
    else:
        for x in items:
            w(p.nullable_string(x.cluster_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_request_topic_data(out, topics, version)


BeginQuorumEpochRequest.READ = _read_request
BeginQuorumEpochRequest.WRITE = _write_request


class BeginQuorumEpochResponse(Message):
    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    API_KEY = 53
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 1

    class TopicData(Struct):
        __slots__ = (
            "topic_name",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[BeginQuorumEpochResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "leader_id",
            "leader_epoch",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
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
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponse.TopicData] = EMPTY,
        node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[BeginQuorumEpochResponse.TopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _read_response_node_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochResponse.NodeEndpoint], int]:
    items: list[BeginQuorumEpochResponse.NodeEndpoint] = []
    for _ in range(count):
        x = new(BeginQuorumEpochResponse.NodeEndpoint)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_node_endpoint(out: Out, items: Sequence[BeginQuorumEpochResponse.NodeEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochResponse.PartitionData], int]:
    items: list[BeginQuorumEpochResponse.PartitionData] = []
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochResponse.PartitionData)
            (x.partition_index, x.error_code, x.leader_id, x.leader_epoch, tags) = _unpack_ihiiB(buf, pos)
            pos += 15
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(BeginQuorumEpochResponse.PartitionData)
            (x.partition_index, x.error_code, x.leader_id, x.leader_epoch) = _unpack_ihii(buf, pos)
            pos += 14
            items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[BeginQuorumEpochResponse.PartitionData], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_ihiix(x.partition_index, x.error_code, x.leader_id, x.leader_epoch))
    else:
        for x in items:
            w(_pack_ihii(x.partition_index, x.error_code, x.leader_id, x.leader_epoch))


def _read_response_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochResponse.TopicData], int]:
    items: list[BeginQuorumEpochResponse.TopicData] = []
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochResponse.TopicData)
            x.topic_name, pos = p.read_compact_string(buf, pos)
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
    else:
        for _ in range(count):
            x = new(BeginQuorumEpochResponse.TopicData)
            x.topic_name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_partition_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_topic_data(out: Out, items: Sequence[BeginQuorumEpochResponse.TopicData], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(p.compact_string(x.topic_name))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_partition_data(out, partitions, version)
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.topic_name))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_partition_data(out, partitions, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginQuorumEpochResponse], int]:
    items: list[BeginQuorumEpochResponse] = []
    if version >= 1:
        for _ in range(count):
            x = new(BeginQuorumEpochResponse)
            x.node_endpoints = []
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
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
            x = new(BeginQuorumEpochResponse)
            x.node_endpoints = []
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_topic_data(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[BeginQuorumEpochResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 1:
        for x in items:
            w(_pack_h(x.error_code))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_topic_data(out, topics, version)
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
            w(_pack_h(x.error_code))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_topic_data(out, topics, version)


BeginQuorumEpochResponse.READ = _read_response
BeginQuorumEpochResponse.WRITE = _write_response
