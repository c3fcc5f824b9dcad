"""Written by `python -m heirlog.protocol.generator` from specs/records/register_broker.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, ZERO_UUID, Message, Out, Struct, new

_pack_oo = _Shape(">??").pack
_unpack_ooB = _Shape(">??B").unpack_from
_pack_oox = _Shape(">??x").pack
_unpack_oB = _Shape(">?B").unpack_from
_pack_ox = _Shape(">?x").pack
_unpack_HhB = _Shape(">HhB").unpack_from
_pack_Hhx = _Shape(">Hhx").pack
_unpack_hhB = _Shape(">hhB").unpack_from
_pack_hhx = _Shape(">hhx").pack
_unpack_iuq = _Shape(">i16sq").unpack_from
_pack_iuq = _Shape(">i16sq").pack
_unpack_iouq = _Shape(">i?16sq").unpack_from
_pack_iouq = _Shape(">i?16sq").pack


class RegisterBrokerRecord(Message):
    __slots__ = (
        "broker_id",
        "is_migrating_zk_broker",
        "incarnation_id",
        "broker_epoch",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
    )
    API_KEY = 0
    MIN_VERSION = 0
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 0

    class BrokerEndpoint(Struct):
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

    class BrokerFeature(Struct):
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
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = EMPTY,
        features: list[RegisterBrokerRecord.BrokerFeature] = EMPTY,
        rack: str | None = None,
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.incarnation_id: bytes = incarnation_id
        self.broker_epoch: int = broker_epoch
        self.end_points: list[RegisterBrokerRecord.BrokerEndpoint] = [] if end_points is EMPTY else end_points
        self.features: list[RegisterBrokerRecord.BrokerFeature] = [] if features is EMPTY else features
        self.rack: str | None = rack
        self.fenced: bool = fenced
        self.in_controlled_shutdown: bool = in_controlled_shutdown
        self.log_dirs: list[bytes] = [] if log_dirs is EMPTY else log_dirs


def _read_broker_feature(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterBrokerRecord.BrokerFeature], int]:
    items: list[RegisterBrokerRecord.BrokerFeature] = []
    for _ in range(count):
        x = new(RegisterBrokerRecord.BrokerFeature)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.min_supported_version, x.max_supported_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_broker_feature(out: Out, items: Sequence[RegisterBrokerRecord.BrokerFeature], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.min_supported_version, x.max_supported_version))


def _read_broker_endpoint(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterBrokerRecord.BrokerEndpoint], int]:
    items: list[RegisterBrokerRecord.BrokerEndpoint] = []
    for _ in range(count):
        x = new(RegisterBrokerRecord.BrokerEndpoint)
        x.name, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.port, x.security_protocol, tags) = _unpack_HhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_broker_endpoint(out: Out, items: Sequence[RegisterBrokerRecord.BrokerEndpoint], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(p.compact_string(x.host))
        w(_pack_Hhx(x.port, x.security_protocol))


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RegisterBrokerRecord], int]:
    items: list[RegisterBrokerRecord] = []
    if version >= 3:
        for _ in range(count):
            x = new(RegisterBrokerRecord)
            x.log_dirs = []
            (x.broker_id, x.is_migrating_zk_broker, x.incarnation_id, x.broker_epoch) = _unpack_iouq(buf, pos)
            pos += 29
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("EndPoints")
            x.end_points, pos = _read_broker_endpoint(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Features")
            x.features, pos = _read_broker_feature(buf, pos, n, version)
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.fenced, x.in_controlled_shutdown, tags) = _unpack_ooB(buf, pos)
            pos += 3
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
                            raise p.null("LogDirs")
                        x.log_dirs, pos = p.read_uuids(buf, pos, n)
                        if pos != end:
                            raise p.bad_tag("LogDirs")
                    else:
                        pos = end
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(RegisterBrokerRecord)
            x.log_dirs = []
            (x.broker_id, x.is_migrating_zk_broker, x.incarnation_id, x.broker_epoch) = _unpack_iouq(buf, pos)
            pos += 29
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("EndPoints")
            x.end_points, pos = _read_broker_endpoint(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Features")
            x.features, pos = _read_broker_feature(buf, pos, n, version)
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.fenced, x.in_controlled_shutdown, tags) = _unpack_ooB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(RegisterBrokerRecord)
            x.is_migrating_zk_broker = False
            x.log_dirs = []
            (x.broker_id, x.incarnation_id, x.broker_epoch) = _unpack_iuq(buf, pos)
            pos += 28
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("EndPoints")
            x.end_points, pos = _read_broker_endpoint(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Features")
            x.features, pos = _read_broker_feature(buf, pos, n, version)
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.fenced, x.in_controlled_shutdown, tags) = _unpack_ooB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(RegisterBrokerRecord)
            x.is_migrating_zk_broker = False
            x.in_controlled_shutdown = False
            x.log_dirs = []
            (x.broker_id, x.incarnation_id, x.broker_epoch) = _unpack_iuq(buf, pos)
            pos += 28
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("EndPoints")
            x.end_points, pos = _read_broker_endpoint(buf, pos, n, version)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Features")
            x.features, pos = _read_broker_feature(buf, pos, n, version)
            x.rack, pos = p.read_compact_nullable_string(buf, pos)
            (x.fenced, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[RegisterBrokerRecord], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 3:
        for x in items:
            w(_pack_iouq(x.broker_id, x.is_migrating_zk_broker, x.incarnation_id, x.broker_epoch))
            end_points = x.end_points
            n = len(end_points) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if end_points:
                _write_broker_endpoint(out, end_points, version)
            features = x.features
            n = len(features) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if features:
                _write_broker_feature(out, features, version)
            w(p.compact_nullable_string(x.rack))
            w(_pack_oo(x.fenced, x.in_controlled_shutdown))
            if x.log_dirs:
                tagged = []
                if x.log_dirs:
                    inner = Out()
                    log_dirs = x.log_dirs
                    n = len(log_dirs) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if log_dirs:
                        inner.small.append(p.uuids(log_dirs))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_iouq(x.broker_id, x.is_migrating_zk_broker, x.incarnation_id, x.broker_epoch))
            end_points = x.end_points
            n = len(end_points) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if end_points:
                _write_broker_endpoint(out, end_points, version)
            features = x.features
            n = len(features) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if features:
                _write_broker_feature(out, features, version)
            w(p.compact_nullable_string(x.rack))
            w(_pack_oox(x.fenced, x.in_controlled_shutdown))
    elif version >= 1:
        for x in items:
            w(_pack_iuq(x.broker_id, x.incarnation_id, x.broker_epoch))
            end_points = x.end_points
            n = len(end_points) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if end_points:
                _write_broker_endpoint(out, end_points, version)
            features = x.features
            n = len(features) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if features:
                _write_broker_feature(out, features, version)
            w(p.compact_nullable_string(x.rack))
            w(_pack_oox(x.fenced, x.in_controlled_shutdown))
    else:
        for x in items:
            w(_pack_iuq(x.broker_id, x.incarnation_id, x.broker_epoch))
            end_points = x.end_points
            n = len(end_points) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if end_points:
                _write_broker_endpoint(out, end_points, version)
            features = x.features
            n = len(features) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if features:
                _write_broker_feature(out, features, version)
            w(p.compact_nullable_string(x.rack))
            w(_pack_ox(x.fenced))


RegisterBrokerRecord.READ = _read
RegisterBrokerRecord.WRITE = _write
