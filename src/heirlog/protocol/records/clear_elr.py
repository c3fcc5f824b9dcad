"""Written by `python -m heirlog.protocol.generator` from specs/records/clear_elr.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class ClearElrRecord(Message):
    __slots__ = (
        "topic_name",
    )
    API_KEY = 28
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name: str = topic_name


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ClearElrRecord], int]:
    items: list[ClearElrRecord] = []
    for _ in range(count):
        x = new(ClearElrRecord)
        x.topic_name, pos = p.read_compact_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[ClearElrRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.topic_name))
        w(b"\0")


ClearElrRecord.READ = _read
ClearElrRecord.WRITE = _write
