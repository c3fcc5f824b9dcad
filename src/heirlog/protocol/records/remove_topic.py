"""Written by `python -m heirlog.protocol.generator` from specs/records/remove_topic.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import ZERO_UUID, Message, Out, new

_unpack_uB = _Shape(">16sB").unpack_from
_pack_ux = _Shape(">16sx").pack


class RemoveTopicRecord(Message):
    __slots__ = (
        "topic_id",
    )
    API_KEY = 9
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.topic_id: bytes = topic_id


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RemoveTopicRecord], int]:
    items: list[RemoveTopicRecord] = []
    for _ in range(count):
        x = new(RemoveTopicRecord)
        (x.topic_id, tags) = _unpack_uB(buf, pos)
        pos += 17
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[RemoveTopicRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ux(x.topic_id))


RemoveTopicRecord.READ = _read
RemoveTopicRecord.WRITE = _write
