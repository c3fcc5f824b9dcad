"""Written by `python -m heirlog.protocol.generator` from specs/messages/sasl_handshake.spec. Do not edit."""

# fmt: off

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import EMPTY, Message, Out, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_pack_i = _Shape(">i").pack


class SaslHandshakeRequest(Message):
    __slots__ = (
        "mechanism",
    )
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism: str = mechanism


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SaslHandshakeRequest], int]:
    items: list[SaslHandshakeRequest] = []
    for _ in range(count):
        x = new(SaslHandshakeRequest)
        x.mechanism, pos = p.read_string(buf, pos)
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[SaslHandshakeRequest], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.string(x.mechanism))


SaslHandshakeRequest.READ = _read_request
SaslHandshakeRequest.WRITE = _write_request


class SaslHandshakeResponse(Message):
    __slots__ = (
        "error_code",
        "mechanisms",
    )
    API_KEY = 17
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = p.NEVER_FLEXIBLE

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is EMPTY else mechanisms


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SaslHandshakeResponse], int]:
    items: list[SaslHandshakeResponse] = []
    for _ in range(count):
        x = new(SaslHandshakeResponse)
        (x.error_code,) = _unpack_h(buf, pos)
        pos += 2
        n, pos = p.read_length(buf, pos)
        if n < 0:
            raise p.null("Mechanisms")
        x.mechanisms, pos = p.read_strings(buf, pos, n)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[SaslHandshakeResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_h(x.error_code))
        mechanisms = x.mechanisms
        w(_pack_i(len(mechanisms)))
        if mechanisms:
            w(p.strings(mechanisms))


SaslHandshakeResponse.READ = _read_response
SaslHandshakeResponse.WRITE = _write_response
