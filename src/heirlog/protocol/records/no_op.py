"""Written by `python -m heirlog.protocol.generator` from specs/records/no_op.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class NoOpRecord(Message):
    __slots__ = ()
    API_KEY = 20
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[NoOpRecord], int]:
    items: list[NoOpRecord] = []
    for _ in range(count):
        x = new(NoOpRecord)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[NoOpRecord], version: int) -> None:
    w = out.small.append
    for _ in items:
        w(b"\0")


NoOpRecord.READ = _read
NoOpRecord.WRITE = _write
