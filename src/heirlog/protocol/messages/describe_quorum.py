"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_quorum.spec. Do not edit."""

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
_unpack_iuqqqB = _Shape(">i16sqqqB").unpack_from
_pack_iuqqqx = _Shape(">i16sqqqx").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ihiiq = _Shape(">ihiiq").unpack_from
_pack_ihiiq = _Shape(">ihiiq").pack
_unpack_iiq = _Shape(">iiq").unpack_from
_pack_iiq = _Shape(">iiq").pack
_unpack_iqB = _Shape(">iqB").unpack_from
_unpack_iqqqB = _Shape(">iqqqB").unpack_from
_pack_iqqqx = _Shape(">iqqqx").pack
_pack_iqx = _Shape(">iqx").pack
_pack_ix = _Shape(">ix").pack


class DescribeQuorumRequest(Message):
    __slots__ = (
        "topics",
    )
    API_KEY = 55
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
            partitions: list[DescribeQuorumRequest.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[DescribeQuorumRequest.PartitionData] = [] if partitions is EMPTY else partitions

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
        topics: list[DescribeQuorumRequest.TopicData] = EMPTY,
    ) -> None:
        self.topics: list[DescribeQuorumRequest.TopicData] = [] if topics is EMPTY else topics


def _read_request_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumRequest.PartitionData], int]:
    items: list[DescribeQuorumRequest.PartitionData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeQuorumRequest.PartitionData)
        (x.partition_index, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_partition_data(out: Out, items: Sequence[DescribeQuorumRequest.PartitionData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ix(x.partition_index))


def _read_request_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumRequest.TopicData], int]:
    items: list[DescribeQuorumRequest.TopicData] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(DescribeQuorumRequest.TopicData)
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


def _write_request_topic_data(out: Out, items: Sequence[DescribeQuorumRequest.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_request_partition_data(out, partitions, version)
        w(b"\0")


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumRequest], int]:
    items: list[DescribeQuorumRequest] = []
    for _ in range(count):
        x = new(DescribeQuorumRequest)
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


def _write_request(out: Out, items: Sequence[DescribeQuorumRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        topics = x.topics
        n = len(topics) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if topics:
            _write_request_topic_data(out, topics, version)
        w(b"\0")


DescribeQuorumRequest.READ = _read_request
DescribeQuorumRequest.WRITE = _write_request


class DescribeQuorumResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )
    API_KEY = 55
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
            partitions: list[DescribeQuorumResponse.PartitionData] = EMPTY,
        ) -> None:
            self.topic_name: str = topic_name
            self.partitions: list[DescribeQuorumResponse.PartitionData] = [] if partitions is EMPTY else partitions

    class PartitionData(Struct):
        __slots__ = (
            "partition_index",
            "error_code",
            "error_message",
            "leader_id",
            "leader_epoch",
            "high_watermark",
            "current_voters",
            "observers",
        )

        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = EMPTY,
            observers: list[DescribeQuorumResponse.ReplicaState] = EMPTY,
        ) -> None:
            self.partition_index: int = partition_index
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.high_watermark: int = high_watermark
            self.current_voters: list[DescribeQuorumResponse.ReplicaState] = [] if current_voters is EMPTY else current_voters
            self.observers: list[DescribeQuorumResponse.ReplicaState] = [] if observers is EMPTY else observers

    class ReplicaState(Struct):
        __slots__ = (
            "replica_id",
            "replica_directory_id",
            "log_end_offset",
            "last_fetch_timestamp",
            "last_caught_up_timestamp",
        )

        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: bytes = ZERO_UUID,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
        ) -> None:
            self.replica_id: int = replica_id
            self.replica_directory_id: bytes = replica_directory_id
            self.log_end_offset: int = log_end_offset
            self.last_fetch_timestamp: int = last_fetch_timestamp
            self.last_caught_up_timestamp: int = last_caught_up_timestamp

    class Node(Struct):
        __slots__ = (
            "node_id",
            "listeners",
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: list[DescribeQuorumResponse.Listener] = EMPTY,
        ) -> None:
            self.node_id: int = node_id
            self.listeners: list[DescribeQuorumResponse.Listener] = [] if listeners is EMPTY else listeners

    class Listener(Struct):
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
        error_code: int = 0,
        error_message: str | None = None,
        topics: list[DescribeQuorumResponse.TopicData] = EMPTY,
        nodes: list[DescribeQuorumResponse.Node] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[DescribeQuorumResponse.TopicData] = [] if topics is EMPTY else topics
        self.nodes: list[DescribeQuorumResponse.Node] = [] if nodes is EMPTY else nodes


def _read_response_listener(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse.Listener], int]:
    items: list[DescribeQuorumResponse.Listener] = []
    for _ in range(count):
        x = new(DescribeQuorumResponse.Listener)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, tags) = _unpack_HB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_listener(out: Out, items: Sequence[DescribeQuorumResponse.Listener], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hx(x.port))


def _read_response_node(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse.Node], int]:
    items: list[DescribeQuorumResponse.Node] = []
    for _ in range(count):
        x = new(DescribeQuorumResponse.Node)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Listeners")
        x.listeners, pos = _read_response_listener(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_node(out: Out, items: Sequence[DescribeQuorumResponse.Node], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_i(x.node_id))
        listeners = x.listeners
        n = len(listeners) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if listeners:
            _write_response_listener(out, listeners, version)
        w(b"\0")


def _read_response_replica_state(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse.ReplicaState], int]:
    items: list[DescribeQuorumResponse.ReplicaState] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeQuorumResponse.ReplicaState)
            (x.replica_id, x.replica_directory_id, x.log_end_offset, x.last_fetch_timestamp, x.last_caught_up_timestamp, tags) = _unpack_iuqqqB(buf, pos)
            pos += 45
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(DescribeQuorumResponse.ReplicaState)
            x.replica_directory_id = ZERO_UUID
            (x.replica_id, x.log_end_offset, x.last_fetch_timestamp, x.last_caught_up_timestamp, tags) = _unpack_iqqqB(buf, pos)
            pos += 29
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeQuorumResponse.ReplicaState)
            x.replica_directory_id = ZERO_UUID
            x.last_fetch_timestamp = -1
            x.last_caught_up_timestamp = -1
            (x.replica_id, x.log_end_offset, tags) = _unpack_iqB(buf, pos)
            pos += 13
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response_replica_state(out: Out, items: Sequence[DescribeQuorumResponse.ReplicaState], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_iuqqqx(x.replica_id, x.replica_directory_id, x.log_end_offset, x.last_fetch_timestamp, x.last_caught_up_timestamp))
    elif version >= 1:
        for x in items:
            w(_pack_iqqqx(x.replica_id, x.log_end_offset, x.last_fetch_timestamp, x.last_caught_up_timestamp))
    else:
        for x in items:
            w(_pack_iqx(x.replica_id, x.log_end_offset))


def _read_response_partition_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse.PartitionData], int]:
    items: list[DescribeQuorumResponse.PartitionData] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeQuorumResponse.PartitionData)
            (x.partition_index, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.leader_id, x.leader_epoch, x.high_watermark) = _unpack_iiq(buf, pos)
            pos += 16
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("CurrentVoters")
            x.current_voters, pos = _read_response_replica_state(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Observers")
            x.observers, pos = _read_response_replica_state(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeQuorumResponse.PartitionData)
            x.error_message = None
            (x.partition_index, x.error_code, x.leader_id, x.leader_epoch, x.high_watermark) = _unpack_ihiiq(buf, pos)
            pos += 22
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("CurrentVoters")
            x.current_voters, pos = _read_response_replica_state(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Observers")
            x.observers, pos = _read_response_replica_state(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response_partition_data(out: Out, items: Sequence[DescribeQuorumResponse.PartitionData], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ih(x.partition_index, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_iiq(x.leader_id, x.leader_epoch, x.high_watermark))
            current_voters = x.current_voters
            n = len(current_voters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if current_voters:
                _write_response_replica_state(out, current_voters, version)
            observers = x.observers
            n = len(observers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if observers:
                _write_response_replica_state(out, observers, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_ihiiq(x.partition_index, x.error_code, x.leader_id, x.leader_epoch, x.high_watermark))
            current_voters = x.current_voters
            n = len(current_voters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if current_voters:
                _write_response_replica_state(out, current_voters, version)
            observers = x.observers
            n = len(observers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if observers:
                _write_response_replica_state(out, observers, version)
            w(b"\0")


def _read_response_topic_data(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse.TopicData], int]:
    items: list[DescribeQuorumResponse.TopicData] = []
    for _ in range(count):
        x = new(DescribeQuorumResponse.TopicData)
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


def _write_response_topic_data(out: Out, items: Sequence[DescribeQuorumResponse.TopicData], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        partitions = x.partitions
        n = len(partitions) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if partitions:
            _write_response_partition_data(out, partitions, version)
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeQuorumResponse], int]:
    items: list[DescribeQuorumResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeQuorumResponse)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_topic_data(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Nodes")
            x.nodes, pos = _read_response_node(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeQuorumResponse)
            x.error_message = None
            x.nodes = []
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


def _write_response(out: Out, items: Sequence[DescribeQuorumResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_topic_data(out, topics, version)
            nodes = x.nodes
            n = len(nodes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if nodes:
                _write_response_node(out, nodes, version)
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


DescribeQuorumResponse.READ = _read_response
DescribeQuorumResponse.WRITE = _write_response
