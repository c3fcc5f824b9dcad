"""Written by `python -m heirlog.protocol.generator` from specs/records/topic.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import ZERO_UUID, Message, Out, new

_unpack_uB = _Shape(">16sB").unpack_from
_pack_ux = _Shape(">16sx").pack


class TopicRecord(Message):
    __slots__ = (
        "name",
        "topic_id",
    )
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[TopicRecord], int]:
    items: list[TopicRecord] = []
    for _ in range(count):
        x = new(TopicRecord)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.topic_id, tags) = _unpack_uB(buf, pos)
        pos += 17
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[TopicRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_ux(x.topic_id))


TopicRecord.READ = _read
TopicRecord.WRITE = _write
