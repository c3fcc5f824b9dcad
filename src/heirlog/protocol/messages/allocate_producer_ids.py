"""Written by `python -m heirlog.protocol.generator` from specs/messages/allocate_producer_ids.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_ihqiB = _Shape(">ihqiB").unpack_from
_pack_ihqix = _Shape(">ihqix").pack
_unpack_iqB = _Shape(">iqB").unpack_from
_pack_iqx = _Shape(">iqx").pack


class AllocateProducerIdsRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
    )
    API_KEY = 67
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AllocateProducerIdsRequest], int]:
    items: list[AllocateProducerIdsRequest] = []
    for _ in range(count):
        x = new(AllocateProducerIdsRequest)
        (x.broker_id, x.broker_epoch, tags) = _unpack_iqB(buf, pos)
        pos += 13
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[AllocateProducerIdsRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_iqx(x.broker_id, x.broker_epoch))


AllocateProducerIdsRequest.READ = _read_request
AllocateProducerIdsRequest.WRITE = _write_request


class AllocateProducerIdsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id_start",
        "producer_id_len",
    )
    API_KEY = 67
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id_start: int = producer_id_start
        self.producer_id_len: int = producer_id_len


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AllocateProducerIdsResponse], int]:
    items: list[AllocateProducerIdsResponse] = []
    for _ in range(count):
        x = new(AllocateProducerIdsResponse)
        (x.throttle_time_ms, x.error_code, x.producer_id_start, x.producer_id_len, tags) = _unpack_ihqiB(buf, pos)
        pos += 19
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[AllocateProducerIdsResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ihqix(x.throttle_time_ms, x.error_code, x.producer_id_start, x.producer_id_len))


AllocateProducerIdsResponse.READ = _read_response
AllocateProducerIdsResponse.WRITE = _write_response
