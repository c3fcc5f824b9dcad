"""Written by `python -m heirlog.protocol.generator` from specs/messages/unregister_broker.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_iB = _Shape(">iB").unpack_from
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_pack_ix = _Shape(">ix").pack


class UnregisterBrokerRequest(Message):
    __slots__ = (
        "broker_id",
    )
    API_KEY = 64
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UnregisterBrokerRequest], int]:
    items: list[UnregisterBrokerRequest] = []
    for _ in range(count):
        x = new(UnregisterBrokerRequest)
        (x.broker_id, tags) = _unpack_iB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[UnregisterBrokerRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ix(x.broker_id))


UnregisterBrokerRequest.READ = _read_request
UnregisterBrokerRequest.WRITE = _write_request


class UnregisterBrokerResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    API_KEY = 64
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UnregisterBrokerResponse], int]:
    items: list[UnregisterBrokerResponse] = []
    for _ in range(count):
        x = new(UnregisterBrokerResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[UnregisterBrokerResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


UnregisterBrokerResponse.READ = _read_response
UnregisterBrokerResponse.WRITE = _write_response
