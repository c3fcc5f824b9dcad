"""Written by `python -m heirlog.protocol.generator` from specs/records/register_controller.spec. Do not edit."""

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


class RegisterControllerRecord(Message):
    __slots__ = (
        "controller_id",
        "incarnation_id",
        "zk_migration_ready",
        "end_points",
        "features",
    )
    API_KEY = 27
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    class ControllerEndpoint(Struct):
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

    class ControllerFeature(Struct):
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
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = EMPTY,
        features: list[RegisterControllerRecord.ControllerFeature] = EMPTY,
    ) -> None:
        self.controller_id: int = controller_id
        self.incarnation_id: bytes = incarnation_id
        self.zk_migration_ready: bool = zk_migration_ready
        self.end_points: list[RegisterControllerRecord.ControllerEndpoint] = [] if end_points is EMPTY else end_points
        self.features: list[RegisterControllerRecord.ControllerFeature] = [] if features is EMPTY else features


def _read_controller_feature(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterControllerRecord.ControllerFeature], int]:
    items: list[RegisterControllerRecord.ControllerFeature] = []
    for _ in range(count):
        x = new(RegisterControllerRecord.ControllerFeature)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.min_supported_version, x.max_supported_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_controller_feature(out: Out, items: Sequence[RegisterControllerRecord.ControllerFeature], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.min_supported_version, x.max_supported_version))


def _read_controller_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterControllerRecord.ControllerEndpoint], int]:
    items: list[RegisterControllerRecord.ControllerEndpoint] = []
    for _ in range(count):
        x = new(RegisterControllerRecord.ControllerEndpoint)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, x.security_protocol, tags) = _unpack_HhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_controller_endpoint(out: Out, items: Sequence[RegisterControllerRecord.ControllerEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hhx(x.port, x.security_protocol))


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterControllerRecord], int]:
    items: list[RegisterControllerRecord] = []
    for _ in range(count):
        x = new(RegisterControllerRecord)
        (x.controller_id, x.incarnation_id, x.zk_migration_ready) = _unpack_iuo(buf, pos)
        pos += 21
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("EndPoints")
        x.end_points, pos = _read_controller_endpoint(buf, pos, n, version)
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("Features")
        x.features, pos = _read_controller_feature(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[RegisterControllerRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iuo(x.controller_id, x.incarnation_id, x.zk_migration_ready))
        end_points = x.end_points
        n = len(end_points) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if end_points:
            _write_controller_endpoint(out, end_points, version)
        features = x.features
        n = len(features) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if features:
            _write_controller_feature(out, features, version)
        w(b"\0")


RegisterControllerRecord.READ = _read
RegisterControllerRecord.WRITE = _write
