"""Written by `python -m heirlog.protocol.generator` from specs/records/snapshot_header.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_hqB = _Shape(">hqB").unpack_from
_pack_hqx = _Shape(">hqx").pack


class SnapshotHeaderRecord(Message):
    __slots__ = (
        "version",
        "last_contained_log_timestamp",
    )
    API_KEY = 3
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None:
        self.version: int = version
        self.last_contained_log_timestamp: int = last_contained_log_timestamp


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SnapshotHeaderRecord], int]:
    items: list[SnapshotHeaderRecord] = []
    for _ in range(count):
        x = new(SnapshotHeaderRecord)
        (x.version, x.last_contained_log_timestamp, tags) = _unpack_hqB(buf, pos)
        pos += 11
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[SnapshotHeaderRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hqx(x.version, x.last_contained_log_timestamp))


SnapshotHeaderRecord.READ = _read
SnapshotHeaderRecord.WRITE = _write
