"""Written by `python -m heirlog.protocol.generator` from specs/records/k_raft_version.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_hhB = _Shape(">hhB").unpack_from
_pack_hhx = _Shape(">hhx").pack


class KRaftVersionRecord(Message):
    __slots__ = (
        "version",
        "k_raft_version",
    )
    API_KEY = 5
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        version: int = 0,
        k_raft_version: int = 0,
    ) -> None:
        self.version: int = version
        self.k_raft_version: int = k_raft_version


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[KRaftVersionRecord], int]:
    items: list[KRaftVersionRecord] = []
    for _ in range(count):
        x = new(KRaftVersionRecord)
        (x.version, x.k_raft_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[KRaftVersionRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_hhx(x.version, x.k_raft_version))


KRaftVersionRecord.READ = _read
KRaftVersionRecord.WRITE = _write
