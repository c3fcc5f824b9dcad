"""Written by `python -m heirlog.protocol.generator` from specs/messages/envelope.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack


class EnvelopeRequest(Message):
    __slots__ = (
        "request_data",
        "request_principal",
        "client_host_address",
    )
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = None,
        client_host_address: bytes = b"",
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[EnvelopeRequest], int]:
    items: list[EnvelopeRequest] = []
    for _ in range(count):
        x = new(EnvelopeRequest)
        x.request_data, pos = p.read_compact_bytes(buf, pos)
        x.request_principal, pos = p.read_compact_nullable_bytes(buf, pos)
        x.client_host_address, pos = p.read_compact_bytes(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[EnvelopeRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_byte_field(x.request_data))
        w(p.compact_nullable_byte_field(x.request_principal))
        w(p.compact_byte_field(x.client_host_address))
        w(b"\0")


EnvelopeRequest.READ = _read_request
EnvelopeRequest.WRITE = _write_request


class EnvelopeResponse(Message):
    __slots__ = (
        "response_data",
        "error_code",
    )
    API_KEY = 58
    MIN_VERSION = 0
    MAX_VERSION = 0
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[EnvelopeResponse], int]:
    items: list[EnvelopeResponse] = []
    for _ in range(count):
        x = new(EnvelopeResponse)
        x.response_data, pos = p.read_compact_nullable_bytes(buf, pos)
        (x.error_code, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[EnvelopeResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_nullable_byte_field(x.response_data))
        w(_pack_hx(x.error_code))


EnvelopeResponse.READ = _read_response
EnvelopeResponse.WRITE = _write_response
