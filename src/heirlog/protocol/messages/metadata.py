"""Written by `python -m heirlog.protocol.generator` from specs/messages/metadata.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_uo = _Shape(">16s?").unpack_from
_pack_uo = _Shape(">16s?").pack
_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_ooo = _Shape(">???").unpack_from
_pack_ooo = _Shape(">???").pack
_unpack_oooB = _Shape(">???B").unpack_from
_pack_ooox = _Shape(">???x").pack
_unpack_ooB = _Shape(">??B").unpack_from
_pack_oox = _Shape(">??x").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hB = _Shape(">hB").unpack_from
_unpack_hii = _Shape(">hii").unpack_from
_pack_hii = _Shape(">hii").pack
_unpack_hiii = _Shape(">hiii").unpack_from
_pack_hiii = _Shape(">hiii").pack
_pack_hx = _Shape(">hx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_pack_ix = _Shape(">ix").pack


class MetadataRequest(Message):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_VERSION = 9

    class MetadataRequestTopic(Struct):
        __slots__ = (
            "topic_id",
            "name",
        )

        def __init__(
            self,
            *,
            topic_id: bytes = ZERO_UUID,
            name: str | None = None,
        ) -> None:
            self.topic_id: bytes = topic_id
            self.name: str | None = name

    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics: list[MetadataRequest.MetadataRequestTopic] | None = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations


def _read_request_metadata_request_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataRequest.MetadataRequestTopic], int]:
    items: list[MetadataRequest.MetadataRequestTopic] = []
    if count > 1:
        p.spend(count)
    if version >= 10:
        for _ in range(count):
            x = new(MetadataRequest.MetadataRequestTopic)
            (x.topic_id,) = _unpack_u(buf, pos)
            pos += 16
            x.name, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(MetadataRequest.MetadataRequestTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataRequest.MetadataRequestTopic)
            x.topic_id = ZERO_UUID
            x.name, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request_metadata_request_topic(out: Out, items: Sequence[MetadataRequest.MetadataRequestTopic], version: int) -> None:
    w = out.small.append
    if version >= 10:
        for x in items:
            w(_pack_u(x.topic_id))
            w(p.compact_nullable_string(x.name))
            w(b"\0")
    elif version >= 9:
        for x in items:
            name_ = p.require(x.name, "Name")
            w(p.compact_string(name_))
            w(b"\0")
    else:
        for x in items:
            name_ = p.require(x.name, "Name")
            w(p.string(name_))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataRequest], int]:
    items: list[MetadataRequest] = []
    if version >= 11:
        for _ in range(count):
            x = new(MetadataRequest)
            x.include_cluster_authorized_operations = False
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            (x.allow_auto_topic_creation, x.include_topic_authorized_operations, tags) = _unpack_ooB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(MetadataRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            (x.allow_auto_topic_creation, x.include_cluster_authorized_operations, x.include_topic_authorized_operations, tags) = _unpack_oooB(buf, pos)
            pos += 4
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(MetadataRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            (x.allow_auto_topic_creation, x.include_cluster_authorized_operations, x.include_topic_authorized_operations) = _unpack_ooo(buf, pos)
            pos += 3
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(MetadataRequest)
            x.include_cluster_authorized_operations = False
            x.include_topic_authorized_operations = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            (x.allow_auto_topic_creation,) = _unpack_o(buf, pos)
            pos += 1
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(MetadataRequest)
            x.allow_auto_topic_creation = True
            x.include_cluster_authorized_operations = False
            x.include_topic_authorized_operations = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.topics = None
            else:
                x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataRequest)
            x.allow_auto_topic_creation = True
            x.include_cluster_authorized_operations = False
            x.include_topic_authorized_operations = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_request_metadata_request_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[MetadataRequest], version: int) -> None:
    w = out.small.append
    if version >= 11:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_metadata_request_topic(out, topics, version)
            w(_pack_oox(x.allow_auto_topic_creation, x.include_topic_authorized_operations))
    elif version >= 9:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\0")
            else:
                n = len(topics) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if topics:
                    _write_request_metadata_request_topic(out, topics, version)
            w(_pack_ooox(x.allow_auto_topic_creation, x.include_cluster_authorized_operations, x.include_topic_authorized_operations))
    elif version >= 8:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topics)))
                if topics:
                    _write_request_metadata_request_topic(out, topics, version)
            w(_pack_ooo(x.allow_auto_topic_creation, x.include_cluster_authorized_operations, x.include_topic_authorized_operations))
    elif version >= 4:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topics)))
                if topics:
                    _write_request_metadata_request_topic(out, topics, version)
            w(_pack_o(x.allow_auto_topic_creation))
    elif version >= 1:
        for x in items:
            topics = x.topics
            if topics is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(topics)))
                if topics:
                    _write_request_metadata_request_topic(out, topics, version)
    else:
        for x in items:
            topics_ = p.require(x.topics, "Topics")
            topics = topics_
            w(_pack_i(len(topics)))
            if topics:
                _write_request_metadata_request_topic(out, topics, version)


MetadataRequest.READ = _read_request
MetadataRequest.WRITE = _write_request


class MetadataResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "error_code",
        "cluster_authorized_operations",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 13
    FLEXIBLE_VERSION = 9

    class MetadataResponseBroker(Struct):
        __slots__ = (
            "node_id",
            "host",
            "port",
            "rack",
        )

        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None:
            self.node_id: int = node_id
            self.host: str = host
            self.port: int = port
            self.rack: str | None = rack

    class MetadataResponseTopic(Struct):
        __slots__ = (
            "error_code",
            "name",
            "topic_id",
            "is_internal",
            "partitions",
            "topic_authorized_operations",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = None,
            topic_id: bytes = ZERO_UUID,
            is_internal: bool = False,
            partitions: list[MetadataResponse.MetadataResponsePartition] = EMPTY,
            topic_authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code: int = error_code
            self.name: str | None = name
            self.topic_id: bytes = topic_id
            self.is_internal: bool = is_internal
            self.partitions: list[MetadataResponse.MetadataResponsePartition] = [] if partitions is EMPTY else partitions
            self.topic_authorized_operations: int = topic_authorized_operations

    class MetadataResponsePartition(Struct):
        __slots__ = (
            "error_code",
            "partition_index",
            "leader_id",
            "leader_epoch",
            "replica_nodes",
            "isr_nodes",
            "offline_replicas",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = EMPTY,
            isr_nodes: list[int] = EMPTY,
            offline_replicas: list[int] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.partition_index: int = partition_index
            self.leader_id: int = leader_id
            self.leader_epoch: int = leader_epoch
            self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
            self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
            self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponse.MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponse.MetadataResponseTopic] = EMPTY,
        error_code: int = 0,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponse.MetadataResponseBroker] = [] if brokers is EMPTY else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponse.MetadataResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.cluster_authorized_operations: int = cluster_authorized_operations


def _read_response_metadata_response_partition(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataResponse.MetadataResponsePartition], int]:
    items: list[MetadataResponse.MetadataResponsePartition] = []
    if version >= 9:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponsePartition)
            (x.error_code, x.partition_index, x.leader_id, x.leader_epoch) = _unpack_hiii(buf, pos)
            pos += 14
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ReplicaNodes")
            x.replica_nodes, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("IsrNodes")
            x.isr_nodes, pos = p.read_int32s(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("OfflineReplicas")
            x.offline_replicas, pos = p.read_int32s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponsePartition)
            (x.error_code, x.partition_index, x.leader_id, x.leader_epoch) = _unpack_hiii(buf, pos)
            pos += 14
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ReplicaNodes")
            x.replica_nodes, pos = p.read_int32s(buf, pos, n)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("IsrNodes")
            x.isr_nodes, pos = p.read_int32s(buf, pos, n)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("OfflineReplicas")
            x.offline_replicas, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponsePartition)
            x.leader_epoch = -1
            (x.error_code, x.partition_index, x.leader_id) = _unpack_hii(buf, pos)
            pos += 10
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ReplicaNodes")
            x.replica_nodes, pos = p.read_int32s(buf, pos, n)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("IsrNodes")
            x.isr_nodes, pos = p.read_int32s(buf, pos, n)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("OfflineReplicas")
            x.offline_replicas, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponsePartition)
            x.leader_epoch = -1
            x.offline_replicas = []
            (x.error_code, x.partition_index, x.leader_id) = _unpack_hii(buf, pos)
            pos += 10
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ReplicaNodes")
            x.replica_nodes, pos = p.read_int32s(buf, pos, n)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("IsrNodes")
            x.isr_nodes, pos = p.read_int32s(buf, pos, n)
            items.append(x)
    return items, pos


def _write_response_metadata_response_partition(out: Out, items: Sequence[MetadataResponse.MetadataResponsePartition], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(_pack_hiii(x.error_code, x.partition_index, x.leader_id, x.leader_epoch))
            replica_nodes = x.replica_nodes
            n = len(replica_nodes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if replica_nodes:
                w(p.int32s(replica_nodes))
            isr_nodes = x.isr_nodes
            n = len(isr_nodes) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if isr_nodes:
                w(p.int32s(isr_nodes))
            offline_replicas = x.offline_replicas
            n = len(offline_replicas) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if offline_replicas:
                w(p.int32s(offline_replicas))
            w(b"\0")
    elif version >= 7:
        for x in items:
            w(_pack_hiii(x.error_code, x.partition_index, x.leader_id, x.leader_epoch))
            replica_nodes = x.replica_nodes
            w(_pack_i(len(replica_nodes)))
            if replica_nodes:
                w(p.int32s(replica_nodes))
            isr_nodes = x.isr_nodes
            w(_pack_i(len(isr_nodes)))
            if isr_nodes:
                w(p.int32s(isr_nodes))
            offline_replicas = x.offline_replicas
            w(_pack_i(len(offline_replicas)))
            if offline_replicas:
                w(p.int32s(offline_replicas))
    elif version >= 5:
        for x in items:
            w(_pack_hii(x.error_code, x.partition_index, x.leader_id))
            replica_nodes = x.replica_nodes
            w(_pack_i(len(replica_nodes)))
            if replica_nodes:
                w(p.int32s(replica_nodes))
            isr_nodes = x.isr_nodes
            w(_pack_i(len(isr_nodes)))
            if isr_nodes:
                w(p.int32s(isr_nodes))
            offline_replicas = x.offline_replicas
            w(_pack_i(len(offline_replicas)))
            if offline_replicas:
                w(p.int32s(offline_replicas))
    else:
        for x in items:
            w(_pack_hii(x.error_code, x.partition_index, x.leader_id))
            replica_nodes = x.replica_nodes
            w(_pack_i(len(replica_nodes)))
            if replica_nodes:
                w(p.int32s(replica_nodes))
            isr_nodes = x.isr_nodes
            w(_pack_i(len(isr_nodes)))
            if isr_nodes:
                w(p.int32s(isr_nodes))


def _read_response_metadata_response_topic(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataResponse.MetadataResponseTopic], int]:
    items: list[MetadataResponse.MetadataResponseTopic] = []
    if version >= 12:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_compact_nullable_string(buf, pos)
            (x.topic_id, x.is_internal) = _unpack_uo(buf, pos)
            pos += 17
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            (x.topic_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 10:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_compact_string(buf, pos)
            (x.topic_id, x.is_internal) = _unpack_uo(buf, pos)
            pos += 17
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            (x.topic_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            x.topic_id = ZERO_UUID
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_compact_string(buf, pos)
            (x.is_internal,) = _unpack_o(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            (x.topic_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            x.topic_id = ZERO_UUID
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_string(buf, pos)
            (x.is_internal,) = _unpack_o(buf, pos)
            pos += 1
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            (x.topic_authorized_operations,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            x.topic_id = ZERO_UUID
            x.topic_authorized_operations = -2147483648
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_string(buf, pos)
            (x.is_internal,) = _unpack_o(buf, pos)
            pos += 1
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseTopic)
            x.topic_id = ZERO_UUID
            x.is_internal = False
            x.topic_authorized_operations = -2147483648
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Partitions")
            x.partitions, pos = _read_response_metadata_response_partition(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_metadata_response_topic(out: Out, items: Sequence[MetadataResponse.MetadataResponseTopic], version: int) -> None:
    w = out.small.append
    if version >= 12:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.name))
            w(_pack_uo(x.topic_id, x.is_internal))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)
            w(_pack_ix(x.topic_authorized_operations))
    elif version >= 10:
        for x in items:
            w(_pack_h(x.error_code))
            name_ = p.require(x.name, "Name")
            w(p.compact_string(name_))
            w(_pack_uo(x.topic_id, x.is_internal))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)
            w(_pack_ix(x.topic_authorized_operations))
    elif version >= 9:
        for x in items:
            w(_pack_h(x.error_code))
            name_ = p.require(x.name, "Name")
            w(p.compact_string(name_))
            w(_pack_o(x.is_internal))
            partitions = x.partitions
            n = len(partitions) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)
            w(_pack_ix(x.topic_authorized_operations))
    elif version >= 8:
        for x in items:
            w(_pack_h(x.error_code))
            name_ = p.require(x.name, "Name")
            w(p.string(name_))
            w(_pack_o(x.is_internal))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)
            w(_pack_i(x.topic_authorized_operations))
    elif version >= 1:
        for x in items:
            w(_pack_h(x.error_code))
            name_ = p.require(x.name, "Name")
            w(p.string(name_))
            w(_pack_o(x.is_internal))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)
    else:
        for x in items:
            w(_pack_h(x.error_code))
            name_ = p.require(x.name, "Name")
            w(p.string(name_))
            partitions = x.partitions
            w(_pack_i(len(partitions)))
            if partitions:
                _write_response_metadata_response_partition(out, partitions, version)


def _read_response_metadata_response_broker(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataResponse.MetadataResponseBroker], int]:
    items: list[MetadataResponse.MetadataResponseBroker] = []
    if version >= 9:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseBroker)
            (x.node_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_compact_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseBroker)
            (x.node_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            x.rack, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataResponse.MetadataResponseBroker)
            x.rack = None
            (x.node_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_response_metadata_response_broker(out: Out, items: Sequence[MetadataResponse.MetadataResponseBroker], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(_pack_i(x.node_id))
            w(p.compact_string(x.host))
            w(_pack_i(x.port))
            w(p.compact_nullable_string(x.rack))
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_i(x.node_id))
            w(p.string(x.host))
            w(_pack_i(x.port))
            w(p.nullable_string(x.rack))
    else:
        for x in items:
            w(_pack_i(x.node_id))
            w(p.string(x.host))
            w(_pack_i(x.port))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[MetadataResponse], int]:
    items: list[MetadataResponse] = []
    if version >= 13:
        for _ in range(count):
            x = new(MetadataResponse)
            x.cluster_authorized_operations = -2147483648
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 11:
        for _ in range(count):
            x = new(MetadataResponse)
            x.error_code = 0
            x.cluster_authorized_operations = -2147483648
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 9:
        for _ in range(count):
            x = new(MetadataResponse)
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            (x.cluster_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 8:
        for _ in range(count):
            x = new(MetadataResponse)
            x.error_code = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            (x.cluster_authorized_operations,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(MetadataResponse)
            x.error_code = 0
            x.cluster_authorized_operations = -2147483648
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(MetadataResponse)
            x.throttle_time_ms = 0
            x.error_code = 0
            x.cluster_authorized_operations = -2147483648
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            x.cluster_id, pos = p.read_nullable_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(MetadataResponse)
            x.throttle_time_ms = 0
            x.cluster_id = None
            x.error_code = 0
            x.cluster_authorized_operations = -2147483648
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(MetadataResponse)
            x.throttle_time_ms = 0
            x.cluster_id = None
            x.controller_id = -1
            x.error_code = 0
            x.cluster_authorized_operations = -2147483648
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_metadata_response_broker(buf, pos, n, version)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Topics")
            x.topics, pos = _read_response_metadata_response_topic(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[MetadataResponse], version: int) -> None:
    w = out.small.append
    if version >= 13:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            brokers = x.brokers
            n = len(brokers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.compact_nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
            w(_pack_hx(x.error_code))
    elif version >= 11:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            brokers = x.brokers
            n = len(brokers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.compact_nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
            w(b"\0")
    elif version >= 9:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            brokers = x.brokers
            n = len(brokers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.compact_nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            n = len(topics) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
            w(_pack_ix(x.cluster_authorized_operations))
    elif version >= 8:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            brokers = x.brokers
            w(_pack_i(len(brokers)))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
            w(_pack_i(x.cluster_authorized_operations))
    elif version >= 3:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            brokers = x.brokers
            w(_pack_i(len(brokers)))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
    elif version >= 2:
        for x in items:
            brokers = x.brokers
            w(_pack_i(len(brokers)))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(p.nullable_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
    elif version >= 1:
        for x in items:
            brokers = x.brokers
            w(_pack_i(len(brokers)))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            w(_pack_i(x.controller_id))
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)
    else:
        for x in items:
            brokers = x.brokers
            w(_pack_i(len(brokers)))
            if brokers:
                _write_response_metadata_response_broker(out, brokers, version)
            topics = x.topics
            w(_pack_i(len(topics)))
            if topics:
                _write_response_metadata_response_topic(out, topics, version)


MetadataResponse.READ = _read_response
MetadataResponse.WRITE = _write_response
