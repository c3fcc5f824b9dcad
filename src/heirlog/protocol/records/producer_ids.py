"""Written by `python -m heirlog.protocol.generator` from specs/records/producer_ids.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_iqqB = _Shape(">iqqB").unpack_from
_pack_iqqx = _Shape(">iqqx").pack


class ProducerIdsRecord(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "next_producer_id",
    )
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.next_producer_id: int = next_producer_id


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ProducerIdsRecord], int]:
    items: list[ProducerIdsRecord] = []
    for _ in range(count):
        x = new(ProducerIdsRecord)
        (x.broker_id, x.broker_epoch, x.next_producer_id, tags) = _unpack_iqqB(buf, pos)
        pos += 21
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[ProducerIdsRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqqx(x.broker_id, x.broker_epoch, x.next_producer_id))


ProducerIdsRecord.READ = _read
ProducerIdsRecord.WRITE = _write
