"""Written by `python -m heirlog.protocol.generator` from specs/messages/init_producer_id.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_ihqh = _Shape(">ihqh").unpack_from
_pack_ihqh = _Shape(">ihqh").pack
_unpack_ihqhB = _Shape(">ihqhB").unpack_from
_pack_ihqhx = _Shape(">ihqhx").pack
_unpack_iqhB = _Shape(">iqhB").unpack_from
_pack_iqhx = _Shape(">iqhx").pack
_pack_ix = _Shape(">ix").pack


class InitProducerIdRequest(Message):
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
    )
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 2

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[InitProducerIdRequest], int]:
    items: list[InitProducerIdRequest] = []
    if version >= 3:
        for _ in range(count):
            x = new(InitProducerIdRequest)
            x.transactional_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.transaction_timeout_ms, x.producer_id, x.producer_epoch, tags) = _unpack_iqhB(buf, pos)
            pos += 15
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(InitProducerIdRequest)
            x.producer_id = -1
            x.producer_epoch = -1
            x.transactional_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.transaction_timeout_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(InitProducerIdRequest)
            x.producer_id = -1
            x.producer_epoch = -1
            x.transactional_id, pos = p.read_nullable_string(buf, pos)
            (x.transaction_timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[InitProducerIdRequest], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(p.compact_nullable_string(x.transactional_id))
            w(_pack_iqhx(x.transaction_timeout_ms, x.producer_id, x.producer_epoch))
    elif version >= 2:
        for x in items:
            w(p.compact_nullable_string(x.transactional_id))
            w(_pack_ix(x.transaction_timeout_ms))
    else:
        for x in items:
            w(p.nullable_string(x.transactional_id))
            w(_pack_i(x.transaction_timeout_ms))


InitProducerIdRequest.READ = _read_request
InitProducerIdRequest.WRITE = _write_request


class InitProducerIdResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )
    API_KEY = 22
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[InitProducerIdResponse], int]:
    items: list[InitProducerIdResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(InitProducerIdResponse)
            (x.throttle_time_ms, x.error_code, x.producer_id, x.producer_epoch, tags) = _unpack_ihqhB(buf, pos)
            pos += 17
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(InitProducerIdResponse)
            (x.throttle_time_ms, x.error_code, x.producer_id, x.producer_epoch) = _unpack_ihqh(buf, pos)
            pos += 16
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[InitProducerIdResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ihqhx(x.throttle_time_ms, x.error_code, x.producer_id, x.producer_epoch))
    else:
        for x in items:
            w(_pack_ihqh(x.throttle_time_ms, x.error_code, x.producer_id, x.producer_epoch))


InitProducerIdResponse.READ = _read_response
InitProducerIdResponse.WRITE = _write_response
