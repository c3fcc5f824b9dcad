"""Written by `python -m heirlog.protocol.generator` from specs/records/end_transaction.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class EndTransactionRecord(Message):
    __slots__ = ()
    API_KEY = 24
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[EndTransactionRecord], int]:
    items: list[EndTransactionRecord] = []
    for _ in range(count):
        x = new(EndTransactionRecord)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[EndTransactionRecord], version: int) -> None:
    w = out.small.append
    for _ in items:
        w(b"\0")


EndTransactionRecord.READ = _read
EndTransactionRecord.WRITE = _write
