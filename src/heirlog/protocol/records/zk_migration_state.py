"""Written by `python -m heirlog.protocol.generator` from specs/records/zk_migration_state.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_bB = _Shape(">bB").unpack_from
_pack_bx = _Shape(">bx").pack


class ZkMigrationStateRecord(Message):
    __slots__ = (
        "zk_migration_state",
    )
    API_KEY = 21
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None:
        self.zk_migration_state: int = zk_migration_state


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ZkMigrationStateRecord], int]:
    items: list[ZkMigrationStateRecord] = []
    for _ in range(count):
        x = new(ZkMigrationStateRecord)
        (x.zk_migration_state, tags) = _unpack_bB(buf, pos)
        pos += 2
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[ZkMigrationStateRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_bx(x.zk_migration_state))


ZkMigrationStateRecord.READ = _read
ZkMigrationStateRecord.WRITE = _write
