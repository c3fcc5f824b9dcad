"""Written by `python -m heirlog.protocol.generator` from specs/messages/vote.spec. Do not edit."""

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
_unpack_ihiioB = _Shape(">ihii?B").unpack_from
_pack_ihiiox = _Shape(">ihii?x").pack
_unpack_iiiuuiqoB = _Shape(">iii16s16siq?B").unpack_from
_pack_iiiuuiqox = _Shape(">iii16s16siq?x").pack
_unpack_iiiuuiqB = _Shape(">iii16s16siqB").unpack_from
_pack_iiiuuiqx = _Shape(">iii16s16siqx").pack
_unpack_iiiiqB = _Shape(">iiiiqB").unpack_from
_pack_iiiiqx = _Shape(">iiiiqx").pack


class VoteRequest(Message):
    __slots__ = (
        "cluster_id",
        "voter_id",
        "topics",
    )
    API_KEY = 52
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class TopicData(Struct):
        __slots__ = (
            "topic_name",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[VoteRequest.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "replica_epoch",
            "replica_id",
            "replica_directory_id",
            "voter_directory_id",
            "last_offset_epoch",
            "last_offset",
            "pre_vote",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: bytes = ZERO_UUID,
            voter_directory_id: bytes = ZERO_UUID,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
        ) -> None:
            self.partition_index: int = partition_index
            self.replica_epoch: int = replica_epoch
            self.replica_id: int = replica_id
            self.replica_directory_id: bytes = replica_directory_id
            self.voter_directory_id: bytes = voter_directory_id
            self.last_offset_epoch: int = last_offset_epoch
            self.last_offset: int = last_offset
            self.pre_vote: bool = pre_vote

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequest.TopicData] = EMPTY,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[VoteRequest.TopicData] = [] if topics is EMPTY else topics


def _read_request_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteRequest.PartitionData], int]:
    items: list[VoteRequest.PartitionData] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(VoteRequest.PartitionData)
            (x.partition_index, x.replica_epoch, x.replica_id, x.replica_directory_id, x.voter_directory_id, x.last_offset_epoch, x.last_offset, x.pre_vote, tags) = _unpack_iiiuuiqoB(buf, pos)
            pos += 58
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(VoteRequest.PartitionData)
            x.pre_vote = False
            (x.partition_index, x.replica_epoch, x.replica_id, x.replica_directory_id, x.voter_directory_id, x.last_offset_epoch, x.last_offset, tags) = _unpack_iiiuuiqB(buf, pos)
            pos += 57
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(VoteRequest.PartitionData)
            x.replica_directory_id = ZERO_UUID
            x.voter_directory_id = ZERO_UUID
            x.pre_vote = False
            (x.partition_index, x.replica_epoch, x.replica_id, x.last_offset_epoch, x.last_offset, tags) = _unpack_iiiiqB(buf, pos)
            pos += 25
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request_partition_data(out: Out, items: Sequence[VoteRequest.PartitionData], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_iiiuuiqox(x.partition_index, x.replica_epoch, x.replica_id, x.replica_directory_id, x.voter_directory_id, x.last_offset_epoch, x.last_offset, x.pre_vote))
    elif version >= 1:
        for x in items:
            w(_pack_iiiuuiqx(x.partition_index, x.replica_epoch, x.replica_id, x.replica_directory_id, x.voter_directory_id, x.last_offset_epoch, x.last_offset))
    else:
        for x in items:
            w(_pack_iiiiqx(x.partition_index, x.replica_epoch, x.replica_id, x.last_offset_epoch, x.last_offset))


def _read_request_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteRequest.TopicData], int]:
    items: list[VoteRequest.TopicData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(VoteRequest.TopicData)
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
    return items, pos


def _write_request_topic_data(out: Out, items: Sequence[VoteRequest.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_partition_data(out, partitions, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteRequest], int]:
    items: list[VoteRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(VoteRequest)
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
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(VoteRequest)
            x.voter_id = -1
            x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
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


def _write_request(out: Out, items: Sequence[VoteRequest], version: int) -> None:
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
            w(b"\0")
    else:
        for x in items:
            w(p.compact_nullable_string(x.cluster_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_request_topic_data(out, topics, version)
            w(b"\0")


VoteRequest.READ = _read_request
VoteRequest.WRITE = _write_request


class VoteResponse(Message):
    __slots__ = (
        "error_code",
        "topics",
        "node_endpoints",
    )
    API_KEY = 52
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class TopicData(Struct):
        __slots__ = (
            "topic_name",
            "partitions",
        )

        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[VoteResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "leader_id",
            "leader_epoch",
            "vote_granted",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.vote_granted: bool = vote_granted

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
        topics: list[VoteResponse.TopicData] = EMPTY,
        node_endpoints: list[VoteResponse.NodeEndpoint] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[VoteResponse.TopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[VoteResponse.NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints


def _read_response_node_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteResponse.NodeEndpoint], int]:
    items: list[VoteResponse.NodeEndpoint] = []
    for _ in range(count):
        x = new(VoteResponse.NodeEndpoint)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_node_endpoint(out: Out, items: Sequence[VoteResponse.NodeEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteResponse.PartitionData], int]:
    items: list[VoteResponse.PartitionData] = []
    for _ in range(count):
        x = new(VoteResponse.PartitionData)
        (x.partition_index, x.error_code, x.leader_id, x.leader_epoch, x.vote_granted, tags) = _unpack_ihiioB(buf, pos)
        pos += 16
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[VoteResponse.PartitionData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ihiiox(x.partition_index, x.error_code, x.leader_id, x.leader_epoch, x.vote_granted))


def _read_response_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteResponse.TopicData], int]:
    items: list[VoteResponse.TopicData] = []
    for _ in range(count):
        x = new(VoteResponse.TopicData)
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
    return items, pos


def _write_response_topic_data(out: Out, items: Sequence[VoteResponse.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_data(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[VoteResponse], int]:
    items: list[VoteResponse] = []
    if version >= 1:
        for _ in range(count):
            x = new(VoteResponse)
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
            x = new(VoteResponse)
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
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[VoteResponse], version: int) -> None:
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
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_topic_data(out, topics, version)
            w(b"\0")


VoteResponse.READ = _read_response
VoteResponse.WRITE = _write_response
