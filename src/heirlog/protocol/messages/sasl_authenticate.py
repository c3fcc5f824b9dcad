"""Written by `python -m heirlog.protocol.generator` from specs/messages/sasl_authenticate.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack
_unpack_qB = _Shape(">qB").unpack_from
_pack_qx = _Shape(">qx").pack


class SaslAuthenticateRequest(Message):
    __slots__ = (
        "auth_bytes",
    )
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes: bytes = auth_bytes


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SaslAuthenticateRequest], int]:
    items: list[SaslAuthenticateRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(SaslAuthenticateRequest)
            x.auth_bytes, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(SaslAuthenticateRequest)
            x.auth_bytes, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[SaslAuthenticateRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_byte_field(x.auth_bytes))
            w(b"\0")
    else:
        for x in items:
            w(p.byte_field(x.auth_bytes))


SaslAuthenticateRequest.READ = _read_request
SaslAuthenticateRequest.WRITE = _write_request


class SaslAuthenticateResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )
    API_KEY = 36
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SaslAuthenticateResponse], int]:
    items: list[SaslAuthenticateResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(SaslAuthenticateResponse)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            x.auth_bytes, pos = p.read_compact_bytes(buf, pos)
            (x.session_lifetime_ms, tags) = _unpack_qB(buf, pos)
            pos += 9
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(SaslAuthenticateResponse)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            x.auth_bytes, pos = p.read_bytes(buf, pos)
            (x.session_lifetime_ms,) = _unpack_q(buf, pos)
            pos += 8
            items.append(x)
    else:
        for _ in range(count):
            x = new(SaslAuthenticateResponse)
            x.session_lifetime_ms = 0
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            x.auth_bytes, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[SaslAuthenticateResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(p.compact_byte_field(x.auth_bytes))
            w(_pack_qx(x.session_lifetime_ms))
    elif version >= 1:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            w(p.byte_field(x.auth_bytes))
            w(_pack_q(x.session_lifetime_ms))
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            w(p.byte_field(x.auth_bytes))


SaslAuthenticateResponse.READ = _read_response
SaslAuthenticateResponse.WRITE = _write_response
