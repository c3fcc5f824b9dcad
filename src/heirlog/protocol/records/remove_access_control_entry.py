"""Written by `python -m heirlog.protocol.generator` from specs/records/remove_access_control_entry.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import ZERO_UUID, Message, Out, new

_unpack_uB = _Shape(">16sB").unpack_from
_pack_ux = _Shape(">16sx").pack


class RemoveAccessControlEntryRecord(Message):
    __slots__ = (
        "id",
    )
    API_KEY = 19
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
    ) -> None:
        self.id: bytes = id


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[RemoveAccessControlEntryRecord], int]:
    items: list[RemoveAccessControlEntryRecord] = []
    for _ in range(count):
        x = new(RemoveAccessControlEntryRecord)
        (x.id, tags) = _unpack_uB(buf, pos)
        pos += 17
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[RemoveAccessControlEntryRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ux(x.id))


RemoveAccessControlEntryRecord.READ = _read
RemoveAccessControlEntryRecord.WRITE = _write
