"""Written by `python -m heirlog.protocol.generator` from specs/records/access_control_entry.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import ZERO_UUID, Message, Out, new

_unpack_ub = _Shape(">16sb").unpack_from
_pack_ub = _Shape(">16sb").pack
_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_bbB = _Shape(">bbB").unpack_from
_pack_bbx = _Shape(">bbx").pack


class AccessControlEntryRecord(Message):
    __slots__ = (
        "id",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.id: bytes = id
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.pattern_type: int = pattern_type
        self.principal: str = principal
        self.host: str = host
        self.operation: int = operation
        self.permission_type: int = permission_type


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AccessControlEntryRecord], int]:
    items: list[AccessControlEntryRecord] = []
    for _ in range(count):
        x = new(AccessControlEntryRecord)
        (x.id, x.resource_type) = _unpack_ub(buf, pos)
        pos += 17
        x.resource_name, pos = p.read_compact_string(buf, pos)
        (x.pattern_type,) = _unpack_b(buf, pos)
        pos += 1
        x.principal, pos = p.read_compact_string(buf, pos)
        x.host, pos = p.read_compact_string(buf, pos)
        (x.operation, x.permission_type, tags) = _unpack_bbB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[AccessControlEntryRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ub(x.id, x.resource_type))
        w(p.compact_string(x.resource_name))
        w(_pack_b(x.pattern_type))
        w(p.compact_string(x.principal))
        w(p.compact_string(x.host))
        w(_pack_bbx(x.operation, x.permission_type))


AccessControlEntryRecord.READ = _read
AccessControlEntryRecord.WRITE = _write
