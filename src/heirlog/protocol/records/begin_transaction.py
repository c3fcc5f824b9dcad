"""Written by `python -m heirlog.protocol.generator` from specs/records/begin_transaction.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class BeginTransactionRecord(Message):
    __slots__ = (
        "name",
    )
    API_KEY = 23
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None:
        self.name: str | None = name


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BeginTransactionRecord], int]:
    items: list[BeginTransactionRecord] = []
    for _ in range(count):
        x = new(BeginTransactionRecord)
        x.name = None
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 0:
                    x.name, pos = p.read_compact_nullable_string(buf, pos)
                    if pos != end:
                        raise p.bad_tag("Name")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[BeginTransactionRecord], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        if x.name is not None:
            tagged = []
            if x.name is not None:
                inner = Out()
                inner.small.append(p.compact_string(x.name))
                tagged.append((0, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


BeginTransactionRecord.READ = _read
BeginTransactionRecord.WRITE = _write
