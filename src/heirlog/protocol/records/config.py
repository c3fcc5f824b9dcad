"""Written by `python -m heirlog.protocol.generator` from specs/records/config.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack


class ConfigRecord(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "name",
        "value",
    )
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.name: str = name
        self.value: str | None = value


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ConfigRecord], int]:
    items: list[ConfigRecord] = []
    for _ in range(count):
        x = new(ConfigRecord)
        (x.resource_type,) = _unpack_b(buf, pos)
        pos += 1
        x.resource_name, pos = p.read_compact_string(buf, pos)
        x.name, pos = p.read_compact_string(buf, pos)
        x.value, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[ConfigRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_b(x.resource_type))
        w(p.compact_string(x.resource_name))
        w(p.compact_string(x.name))
        w(p.compact_nullable_string(x.value))
        w(b"\0")


ConfigRecord.READ = _read
ConfigRecord.WRITE = _write
