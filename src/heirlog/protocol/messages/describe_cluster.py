"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_cluster.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_oB = _Shape(">?B").unpack_from
_unpack_oboB = _Shape(">?b?B").unpack_from
_pack_obox = _Shape(">?b?x").pack
_unpack_obB = _Shape(">?bB").unpack_from
_pack_obx = _Shape(">?bx").pack
_pack_ox = _Shape(">?x").pack
_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_pack_ix = _Shape(">ix").pack


class DescribeClusterRequest(Message):
    __slots__ = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeClusterRequest], int]:
    items: list[DescribeClusterRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeClusterRequest)
            (x.include_cluster_authorized_operations, x.endpoint_type, x.include_fenced_brokers, tags) = _unpack_oboB(buf, pos)
            pos += 4
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(DescribeClusterRequest)
            x.include_fenced_brokers = False
            (x.include_cluster_authorized_operations, x.endpoint_type, tags) = _unpack_obB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeClusterRequest)
            x.endpoint_type = 1
            x.include_fenced_brokers = False
            (x.include_cluster_authorized_operations, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeClusterRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_obox(x.include_cluster_authorized_operations, x.endpoint_type, x.include_fenced_brokers))
    elif version >= 1:
        for x in items:
            w(_pack_obx(x.include_cluster_authorized_operations, x.endpoint_type))
    else:
        for x in items:
            w(_pack_ox(x.include_cluster_authorized_operations))


DescribeClusterRequest.READ = _read_request
DescribeClusterRequest.WRITE = _write_request


class DescribeClusterResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    API_KEY = 60
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class DescribeClusterBroker(Struct):
        __slots__ = (
            "broker_id",
            "host",
            "port",
            "rack",
            "is_fenced",
        )

        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
        ) -> None:
            self.broker_id: int = broker_id
            self.host: str = host
            self.port: int = port
            self.rack: str | None = rack
            self.is_fenced: bool = is_fenced

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = EMPTY,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterResponse.DescribeClusterBroker] = [] if brokers is EMPTY else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations


def _read_response_describe_cluster_broker(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeClusterResponse.DescribeClusterBroker], int]:
    items: list[DescribeClusterResponse.DescribeClusterBroker] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeClusterResponse.DescribeClusterBroker)
            (x.broker_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_compact_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.is_fenced, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeClusterResponse.DescribeClusterBroker)
            x.is_fenced = False
            (x.broker_id,) = _unpack_i(buf, pos)
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
    return items, pos


def _write_response_describe_cluster_broker(out: Out, items: Sequence[DescribeClusterResponse.DescribeClusterBroker], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.host))
            w(_pack_i(x.port))
            w(p.compact_nullable_string(x.rack))
            w(_pack_ox(x.is_fenced))
    else:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.host))
            w(_pack_i(x.port))
            w(p.compact_nullable_string(x.rack))
            w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeClusterResponse], int]:
    items: list[DescribeClusterResponse] = []
    if version >= 1:
        for _ in range(count):
            x = new(DescribeClusterResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.endpoint_type,) = _unpack_b(buf, pos)
            pos += 1
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_describe_cluster_broker(buf, pos, n, version)
            (x.cluster_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeClusterResponse)
            x.endpoint_type = 1
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.controller_id,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Brokers")
            x.brokers, pos = _read_response_describe_cluster_broker(buf, pos, n, version)
            (x.cluster_authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeClusterResponse], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_b(x.endpoint_type))
            w(p.compact_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            brokers = x.brokers
            n = len(brokers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if brokers:
                _write_response_describe_cluster_broker(out, brokers, version)
            w(_pack_ix(x.cluster_authorized_operations))
    else:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(p.compact_string(x.cluster_id))
            w(_pack_i(x.controller_id))
            brokers = x.brokers
            n = len(brokers) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if brokers:
                _write_response_describe_cluster_broker(out, brokers, version)
            w(_pack_ix(x.cluster_authorized_operations))


DescribeClusterResponse.READ = _read_response
DescribeClusterResponse.WRITE = _write_response
