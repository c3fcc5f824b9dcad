"""Written by `python -m heirlog.protocol.generator` from specs/records/unfence_broker.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_iqB = _Shape(">iqB").unpack_from
_pack_iqx = _Shape(">iqx").pack


class UnfenceBrokerRecord(Message):
    __slots__ = (
        "id",
        "epoch",
    )
    API_KEY = 8
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None:
        self.id: int = id
        self.epoch: int = epoch


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UnfenceBrokerRecord], int]:
    items: list[UnfenceBrokerRecord] = []
    for _ in range(count):
        x = new(UnfenceBrokerRecord)
        (x.id, x.epoch, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[UnfenceBrokerRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.id, x.epoch))


UnfenceBrokerRecord.READ = _read
UnfenceBrokerRecord.WRITE = _write
