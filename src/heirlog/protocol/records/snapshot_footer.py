"""Written by `python -m heirlog.protocol.generator` from specs/records/snapshot_footer.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack


class SnapshotFooterRecord(Message):
    __slots__ = (
        "version",
    )
    API_KEY = 4
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None:
        self.version: int = version


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SnapshotFooterRecord], int]:
    items: list[SnapshotFooterRecord] = []
    for _ in range(count):
        x = new(SnapshotFooterRecord)
        (x.version, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[SnapshotFooterRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hx(x.version))


SnapshotFooterRecord.READ = _read
SnapshotFooterRecord.WRITE = _write
