"""Written by `python -m heirlog.protocol.generator` from specs/records/broker_registration_change.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, new

_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_pack_iq = _Shape(">iq").pack
_unpack_iqB = _Shape(">iqB").unpack_from


class BrokerRegistrationChangeRecord(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
    )
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] = EMPTY,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.fenced: int = fenced
        self.in_controlled_shutdown: int = in_controlled_shutdown
        self.log_dirs: list[bytes] = [] if log_dirs is EMPTY else log_dirs


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[BrokerRegistrationChangeRecord], int]:
    items: list[BrokerRegistrationChangeRecord] = []
    if version >= 2:
        for _ in range(count):
            x = new(BrokerRegistrationChangeRecord)
            x.fenced = 0
            x.in_controlled_shutdown = 0
            x.log_dirs = []
            (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
            pos += 13
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.fenced,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("Fenced")
                    elif tag == 1:
                        (x.in_controlled_shutdown,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("InControlledShutdown")
                    elif tag == 2:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("LogDirs")
                        x.log_dirs, pos = p.read_uuids(buf, pos, n)
                        if pos != end:
                            raise p.bad_tag("LogDirs")
                    else:
                        pos = end
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(BrokerRegistrationChangeRecord)
            x.fenced = 0
            x.in_controlled_shutdown = 0
            x.log_dirs = []
            (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
            pos += 13
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.fenced,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("Fenced")
                    elif tag == 1:
                        (x.in_controlled_shutdown,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("InControlledShutdown")
                    else:
                        pos = end
            items.append(x)
    else:
        for _ in range(count):
            x = new(BrokerRegistrationChangeRecord)
            x.fenced = 0
            x.in_controlled_shutdown = 0
            x.log_dirs = []
            (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
            pos += 13
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        (x.fenced,) = _unpack_b(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("Fenced")
                    else:
                        pos = end
            items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[BrokerRegistrationChangeRecord], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 2:
        for x in items:
            w(_pack_iq(x.broker_id, x.broker_epoch))
            if x.fenced != 0 or x.in_controlled_shutdown != 0 or x.log_dirs:
                tagged = []
                if x.fenced != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.fenced))
                    tagged.append((0, inner))
                if x.in_controlled_shutdown != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.in_controlled_shutdown))
                    tagged.append((1, inner))
                if x.log_dirs:
                    inner = Out()
                    log_dirs = x.log_dirs
                    n = len(log_dirs) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if log_dirs:
                        inner.small.append(p.uuids(log_dirs))
                    tagged.append((2, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_iq(x.broker_id, x.broker_epoch))
            if x.fenced != 0 or x.in_controlled_shutdown != 0:
                tagged = []
                if x.fenced != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.fenced))
                    tagged.append((0, inner))
                if x.in_controlled_shutdown != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.in_controlled_shutdown))
                    tagged.append((1, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    else:
        for x in items:
            w(_pack_iq(x.broker_id, x.broker_epoch))
            if x.fenced != 0:
                tagged = []
                if x.fenced != 0:
                    inner = Out()
                    inner.small.append(_pack_b(x.fenced))
                    tagged.append((0, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")


BrokerRegistrationChangeRecord.READ = _read
BrokerRegistrationChangeRecord.WRITE = _write
