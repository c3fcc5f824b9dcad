"""Written by `python -m heirlog.protocol.generator` from specs/records/unregister_broker.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_iqB = _Shape(">iqB").unpack_from
_pack_iqx = _Shape(">iqx").pack


class UnregisterBrokerRecord(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
    )
    API_KEY = 1
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UnregisterBrokerRecord], int]:
    items: list[UnregisterBrokerRecord] = []
    for _ in range(count):
        x = new(UnregisterBrokerRecord)
        (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[UnregisterBrokerRecord], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.broker_id, x.broker_epoch))


UnregisterBrokerRecord.READ = _read
UnregisterBrokerRecord.WRITE = _write
