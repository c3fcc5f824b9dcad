"""Written by `python -m heirlog.protocol.generator` from specs/messages/broker_registration.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_unpack_u = _Shape(">16s").unpack_from
_pack_u = _Shape(">16s").pack
_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_oB = _Shape(">?B").unpack_from
_pack_ox = _Shape(">?x").pack
_unpack_HhB = _Shape(">HhB").unpack_from
_pack_Hhx = _Shape(">Hhx").pack
_unpack_hhB = _Shape(">hhB").unpack_from
_pack_hhx = _Shape(">hhx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ihqB = _Shape(">ihqB").unpack_from
_pack_ihqx = _Shape(">ihqx").pack
_unpack_qB = _Shape(">qB").unpack_from
_pack_qx = _Shape(">qx").pack


class BrokerRegistrationRequest(Message):
    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )
    API_KEY = 62
    MIN_VERSION = 0
    MAX_VERSION = 4
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
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ZERO_UUID,
        listeners: list[BrokerRegistrationRequest.Listener] = EMPTY,
        features: list[BrokerRegistrationRequest.Feature] = EMPTY,
        rack: str | None = None,
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = EMPTY,
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.incarnation_id: bytes = incarnation_id
        self.listeners: list[BrokerRegistrationRequest.Listener] = [] if listeners is EMPTY else listeners
        self.features: list[BrokerRegistrationRequest.Feature] = [] if features is EMPTY else features
        self.rack: str | None = rack
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.log_dirs: list[bytes] = [] if log_dirs is EMPTY else log_dirs
        self.previous_broker_epoch: int = previous_broker_epoch


def _read_request_feature(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerRegistrationRequest.Feature], int]:
    items: list[BrokerRegistrationRequest.Feature] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(BrokerRegistrationRequest.Feature)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.min_supported_version, x.max_supported_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_feature(out: Out, items: Sequence[BrokerRegistrationRequest.Feature], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.min_supported_version, x.max_supported_version))


def _read_request_listener(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerRegistrationRequest.Listener], int]:
    items: list[BrokerRegistrationRequest.Listener] = []
    if count > 1:
        p.spend(count)
    for _ in range(count):
        x = new(BrokerRegistrationRequest.Listener)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, x.security_protocol, tags) = _unpack_HhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request_listener(out: Out, items: Sequence[BrokerRegistrationRequest.Listener], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hhx(x.port, x.security_protocol))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerRegistrationRequest], int]:
    items: list[BrokerRegistrationRequest] = []
    if version >= 3:
        for _ in range(count):
            x = new(BrokerRegistrationRequest)
            (x.broker_id,) = _unpack_i(buf, pos)
            pos += 4
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.incarnation_id,) = _unpack_u(buf, pos)
            pos += 16
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
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.is_migrating_zk_broker,) = _unpack_o(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("LogDirs")
            x.log_dirs, pos = p.read_uuids(buf, pos, n)
            (x.previous_broker_epoch, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(BrokerRegistrationRequest)
            x.previous_broker_epoch = -1
            (x.broker_id,) = _unpack_i(buf, pos)
            pos += 4
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.incarnation_id,) = _unpack_u(buf, pos)
            pos += 16
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
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.is_migrating_zk_broker,) = _unpack_o(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("LogDirs")
            x.log_dirs, pos = p.read_uuids(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(BrokerRegistrationRequest)
            x.log_dirs = []
            x.previous_broker_epoch = -1
            (x.broker_id,) = _unpack_i(buf, pos)
            pos += 4
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.incarnation_id,) = _unpack_u(buf, pos)
            pos += 16
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
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.is_migrating_zk_broker, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(BrokerRegistrationRequest)
            x.is_migrating_zk_broker = False
            x.log_dirs = []
            x.previous_broker_epoch = -1
            (x.broker_id,) = _unpack_i(buf, pos)
            pos += 4
            x.cluster_id, pos = p.read_compact_string(buf, pos)
            (x.incarnation_id,) = _unpack_u(buf, pos)
            pos += 16
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
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[BrokerRegistrationRequest], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.cluster_id))
            w(_pack_u(x.incarnation_id))
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
            w(p.compact_nullable_string(x.rack))
            w(_pack_o(x.is_migrating_zk_broker))
            log_dirs = x.log_dirs
            n = len(log_dirs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if log_dirs:
                w(p.uuids(log_dirs))
            w(_pack_qx(x.previous_broker_epoch))
    elif version >= 2:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.cluster_id))
            w(_pack_u(x.incarnation_id))
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
            w(p.compact_nullable_string(x.rack))
            w(_pack_o(x.is_migrating_zk_broker))
            log_dirs = x.log_dirs
            n = len(log_dirs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if log_dirs:
                w(p.uuids(log_dirs))
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.cluster_id))
            w(_pack_u(x.incarnation_id))
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
            w(p.compact_nullable_string(x.rack))
            w(_pack_ox(x.is_migrating_zk_broker))
    else:
        for x in items:
            w(_pack_i(x.broker_id))
            w(p.compact_string(x.cluster_id))
            w(_pack_u(x.incarnation_id))
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
            w(p.compact_nullable_string(x.rack))
            w(b"\0")


BrokerRegistrationRequest.READ = _read_request
BrokerRegistrationRequest.WRITE = _write_request


class BrokerRegistrationResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "broker_epoch",
    )
    API_KEY = 62
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerRegistrationResponse], int]:
    items: list[BrokerRegistrationResponse] = []
    for _ in range(count):
        x = new(BrokerRegistrationResponse)
        (x.throttle_time_ms, x.error_code, x.broker_epoch, tags) = _unpack_ihqB(buf, pos)
        pos += 15
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[BrokerRegistrationResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ihqx(x.throttle_time_ms, x.error_code, x.broker_epoch))


BrokerRegistrationResponse.READ = _read_response
BrokerRegistrationResponse.WRITE = _write_response
