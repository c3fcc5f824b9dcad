"""Written by `python -m heirlog.protocol.generator` from specs/records/feature_level.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack


class FeatureLevelRecord(Message):
    __slots__ = (
        "name",
        "feature_level",
    )
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None:
        self.name: str = name
        self.feature_level: int = feature_level


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[FeatureLevelRecord], int]:
    items: list[FeatureLevelRecord] = []
    for _ in range(count):
        x = new(FeatureLevelRecord)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.feature_level, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[FeatureLevelRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hx(x.feature_level))


FeatureLevelRecord.READ = _read
FeatureLevelRecord.WRITE = _write
