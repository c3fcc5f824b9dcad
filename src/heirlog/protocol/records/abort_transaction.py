"""Written by `python -m heirlog.protocol.generator` from specs/records/abort_transaction.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new


class AbortTransactionRecord(Message):
    __slots__ = (
        "reason",
    )
    API_KEY = 25
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None:
        self.reason: str | None = reason


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AbortTransactionRecord], int]:
    items: list[AbortTransactionRecord] = []
    for _ in range(count):
        x = new(AbortTransactionRecord)
        x.reason = None
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 0:
                    x.reason, pos = p.read_compact_nullable_string(buf, pos)
                    if pos != end:
                        raise p.bad_tag("Reason")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[AbortTransactionRecord], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        if x.reason is not None:
            tagged = []
            if x.reason is not None:
                inner = Out()
                inner.small.append(p.compact_string(x.reason))
                tagged.append((0, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


AbortTransactionRecord.READ = _read
AbortTransactionRecord.WRITE = _write
