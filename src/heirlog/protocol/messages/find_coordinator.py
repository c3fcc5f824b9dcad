"""Written by `python -m heirlog.protocol.generator` from specs/messages/find_coordinator.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_bB = _Shape(">bB").unpack_from
_pack_bx = _Shape(">bx").pack
_unpack_hi = _Shape(">hi").unpack_from
_pack_hi = _Shape(">hi").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_pack_ix = _Shape(">ix").pack


class FindCoordinatorRequest(Message):
    __slots__ = (
        "key",
        "key_type",
        "coordinator_keys",
    )
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 3

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = EMPTY,
    ) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is EMPTY else coordinator_keys


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FindCoordinatorRequest], int]:
    items: list[FindCoordinatorRequest] = []
    if version >= 4:
        for _ in range(count):
            x = new(FindCoordinatorRequest)
            x.key = ""
            (x.key_type,) = _unpack_b(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("CoordinatorKeys")
            x.coordinator_keys, pos = p.read_compact_strings(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(FindCoordinatorRequest)
            x.coordinator_keys = []
            x.key, pos = p.read_compact_string(buf, pos)
            (x.key_type, tags) = _unpack_bB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(FindCoordinatorRequest)
            x.coordinator_keys = []
            x.key, pos = p.read_string(buf, pos)
            (x.key_type,) = _unpack_b(buf, pos)
            pos += 1
            items.append(x)
    else:
        for _ in range(count):
            x = new(FindCoordinatorRequest)
            x.key_type = 0
            x.coordinator_keys = []
            x.key, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[FindCoordinatorRequest], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_b(x.key_type))
            coordinator_keys = x.coordinator_keys
            n = len(coordinator_keys) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if coordinator_keys:
                w(p.compact_strings(coordinator_keys))
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.compact_string(x.key))
            w(_pack_bx(x.key_type))
    elif version >= 1:
        for x in items:
            w(p.string(x.key))
            w(_pack_b(x.key_type))
    else:
        for x in items:
            w(p.string(x.key))


FindCoordinatorRequest.READ = _read_request
FindCoordinatorRequest.WRITE = _write_request


class FindCoordinatorResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "coordinators",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
    )
    API_KEY = 10
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 3

    class Coordinator(Struct):
        __slots__ = (
            "key",
            "node_id",
            "host",
            "port",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            key: str = "",
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.key: str = key
            self.node_id: int = node_id
            self.host: str = host
            self.port: int = port
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        coordinators: list[FindCoordinatorResponse.Coordinator] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.coordinators: list[FindCoordinatorResponse.Coordinator] = [] if coordinators is EMPTY else coordinators
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port


def _read_response_coordinator(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FindCoordinatorResponse.Coordinator], int]:
    items: list[FindCoordinatorResponse.Coordinator] = []
    for _ in range(count):
        x = new(FindCoordinatorResponse.Coordinator)
        x.key, pos = p.read_compact_string(buf, pos)
        (x.node_id,) = _unpack_i(buf, pos)
        pos += 4
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_coordinator(out: Out, items: Sequence[FindCoordinatorResponse.Coordinator], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.key))
        w(_pack_i(x.node_id))
        w(p.compact_string(x.host))
        w(_pack_ih(x.port, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FindCoordinatorResponse], int]:
    items: list[FindCoordinatorResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(FindCoordinatorResponse)
            x.error_code = 0
            x.error_message = None
            x.node_id = 0
            x.host = ""
            x.port = 0
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Coordinators")
            x.coordinators, pos = _read_response_coordinator(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(FindCoordinatorResponse)
            x.coordinators = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.node_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_compact_string(buf, pos)
            (x.port, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(FindCoordinatorResponse)
            x.coordinators = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_nullable_string(buf, pos)
            (x.node_id,) = _unpack_i(buf, pos)
            pos += 4
            x.host, pos = p.read_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    else:
        for _ in range(count):
            x = new(FindCoordinatorResponse)
            x.throttle_time_ms = 0
            x.coordinators = []
            x.error_message = None
            (x.error_code, x.node_id) = _unpack_hi(buf, pos)
            pos += 6
            x.host, pos = p.read_string(buf, pos)
            (x.port,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[FindCoordinatorResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            coordinators = x.coordinators
            n = len(coordinators) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if coordinators:
                _write_response_coordinator(out, coordinators, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_i(x.node_id))
            w(p.compact_string(x.host))
            w(_pack_ix(x.port))
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.nullable_string(x.error_message))
            w(_pack_i(x.node_id))
            w(p.string(x.host))
            w(_pack_i(x.port))
    else:
        for x in items:
            w(_pack_hi(x.error_code, x.node_id))
            w(p.string(x.host))
            w(_pack_i(x.port))


FindCoordinatorResponse.READ = _read_response
FindCoordinatorResponse.WRITE = _write_response
