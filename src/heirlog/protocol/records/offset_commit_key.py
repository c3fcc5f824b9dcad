"""Written by `python -m heirlog.protocol.generator` from specs/records/offset_commit_key.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack


class OffsetCommitKey(Message):
    __slots__ = (
        "group",
        "topic",
        "partition",
    )
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group: str = group
        self.topic: str = topic
        self.partition: int = partition


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[OffsetCommitKey], int]:
    items: list[OffsetCommitKey] = []
    for _ in range(count):
        x = new(OffsetCommitKey)
        x.group, pos = p.read_string(buf, pos)
        x.topic, pos = p.read_string(buf, pos)
        (x.partition,) = _unpack_i(buf, pos)
        pos += 4
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[OffsetCommitKey], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.group))
        w(p.string(x.topic))
        w(_pack_i(x.partition))


OffsetCommitKey.READ = _read
OffsetCommitKey.WRITE = _write
