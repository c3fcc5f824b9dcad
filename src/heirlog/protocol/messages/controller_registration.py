"""Written by `python -m heirlog.protocol.generator` from specs/messages/controller_registration.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_HhB = _Shape(">HhB").unpack_from
_pack_Hhx = _Shape(">Hhx").pack
_unpack_hhB = _Shape(">hhB").unpack_from
_pack_hhx = _Shape(">hhx").pack
_unpack_iuo = _Shape(">i16s?").unpack_from
_pack_iuo = _Shape(">i16s?").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class ControllerRegistrationRequest(Message):
    __slots__ = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "listeners",
        "features",
    )
    API_KEY = 70
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class Listener(Struct):
        __slots__ = (
            "name",
            "host",
            "port",
            "security_protocol",
        )

        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None:
            self.name: str = name
            self.host: str = host
            self.port: int = port
            self.security_protocol: int = security_protocol

    class Feature(Struct):
        __slots__ = (
            "name",
            "min_supported_version",
            "max_supported_version",
        )

        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None:
            self.name: str = name
            self.min_supported_version: int = min_supported_version
            self.max_supported_version: int = max_supported_version

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ZERO_UUID,
        zk_migration_ready: bool = False,
        listeners: list[ControllerRegistrationRequest.Listener] = EMPTY,
        features: list[ControllerRegistrationRequest.Feature] = EMPTY,
    ) -> None:
        self.controller_id: int = controller_id
        self.incarnation_id: bytes = incarnation_id
        self.zk_migration_ready: bool = zk_migration_ready
        self.listeners: list[ControllerRegistrationRequest.Listener] = [] if listeners is EMPTY else listeners
        self.features: list[ControllerRegistrationRequest.Feature] = [] if features is EMPTY else features


def _read_request_feature(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ControllerRegistrationRequest.Feature], int]:
    items: list[ControllerRegistrationRequest.Feature] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(ControllerRegistrationRequest.Feature)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.min_supported_version, x.max_supported_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_feature(out: Out, items: Sequence[ControllerRegistrationRequest.Feature], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.min_supported_version, x.max_supported_version))


def _read_request_listener(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ControllerRegistrationRequest.Listener], int]:
    items: list[ControllerRegistrationRequest.Listener] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(ControllerRegistrationRequest.Listener)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, x.security_protocol, tags) = _unpack_HhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_listener(out: Out, items: Sequence[ControllerRegistrationRequest.Listener], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hhx(x.port, x.security_protocol))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ControllerRegistrationRequest], int]:
    items: list[ControllerRegistrationRequest] = []
    for _ in range(count):
        x = new(ControllerRegistrationRequest)
        (x.controller_id, x.incarnation_id, x.zk_migration_ready) = _unpack_iuo(buf, pos)
        pos += 21
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Listeners")
        x.listeners, pos = _read_request_listener(buf, pos, n, version)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Features")
        x.features, pos = _read_request_feature(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ControllerRegistrationRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iuo(x.controller_id, x.incarnation_id, x.zk_migration_ready))
        listeners = x.listeners
        n = len(listeners) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if listeners:
            _write_request_listener(out, listeners, version)
        features = x.features
        n = len(features) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if features:
            _write_request_feature(out, features, version)
        w(b"\0")


ControllerRegistrationRequest.READ = _read_request
ControllerRegistrationRequest.WRITE = _write_request


class ControllerRegistrationResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    API_KEY = 70
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ControllerRegistrationResponse], int]:
    items: list[ControllerRegistrationResponse] = []
    for _ in range(count):
        x = new(ControllerRegistrationResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ControllerRegistrationResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


ControllerRegistrationResponse.READ = _read_response
ControllerRegistrationResponse.WRITE = _write_response
