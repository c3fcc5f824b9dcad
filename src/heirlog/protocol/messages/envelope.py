"""Written by `python -m heirlog.protocol.generator` from specs/messages/envelope.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_pack_h = _Shape(">h").pack
_unpack_hB = _Shape(">hB").unpack_from
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class EnvelopeRequest(Message):
    __slots__ = (
        "request_data",
        "request_principal",
        "client_host_address",
        "wants_metadata_offset",
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
        wants_metadata_offset: bool = False,
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address
        self.wants_metadata_offset: bool = wants_metadata_offset


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[EnvelopeRequest], int]:
    items: list[EnvelopeRequest] = []
    for _ in range(count):
        x = new(EnvelopeRequest)
        x.wants_metadata_offset = False
        x.request_data, pos = p.read_compact_bytes(buf, pos)
        x.request_principal, pos = p.read_compact_nullable_bytes(buf, pos)
        x.client_host_address, pos = p.read_compact_bytes(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 10000:
                    (x.wants_metadata_offset,) = _unpack_o(buf, pos)
                    pos += 1
                    if pos != end:
                        raise p.bad_tag("WantsMetadataOffset")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[EnvelopeRequest], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(p.compact_byte_field(x.request_data))
        w(p.compact_nullable_byte_field(x.request_principal))
        w(p.compact_byte_field(x.client_host_address))
        if x.wants_metadata_offset:
            tagged = []
            if x.wants_metadata_offset:
                inner = Out()
                inner.small.append(_pack_o(x.wants_metadata_offset))
                tagged.append((10000, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


EnvelopeRequest.READ = _read_request
EnvelopeRequest.WRITE = _write_request


class EnvelopeResponse(Message):
    __slots__ = (
        "response_data",
        "error_code",
        "metadata_offset",
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
        metadata_offset: int = -1,
    ) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code
        self.metadata_offset: int = metadata_offset


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[EnvelopeResponse], int]:
    items: list[EnvelopeResponse] = []
    for _ in range(count):
        x = new(EnvelopeResponse)
        x.metadata_offset = -1
        x.response_data, pos = p.read_compact_nullable_bytes(buf, pos)
        (x.error_code, tags) = _unpack_hB(buf, pos)
        pos += 3
        if tags:
            if tags >= 128:
                tags, pos = p.more_uvarint(buf, pos, tags)
            for _ in range(tags):
                tag, pos = p.read_uvarint(buf, pos)
                pos, end = p.read_tag_end(buf, pos)
                if tag == 10000:
                    (x.metadata_offset,) = _unpack_q(buf, pos)
                    pos += 8
                    if pos != end:
                        raise p.bad_tag("MetadataOffset")
                else:
                    pos = end
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[EnvelopeResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    for x in items:
        w(p.compact_nullable_byte_field(x.response_data))
        w(_pack_h(x.error_code))
        if x.metadata_offset != -1:
            tagged = []
            if x.metadata_offset != -1:
                inner = Out()
                inner.small.append(_pack_q(x.metadata_offset))
                tagged.append((10000, inner))
            p.write_tags(out, tagged)
        else:
            w(b"\0")


EnvelopeResponse.READ = _read_response
EnvelopeResponse.WRITE = _write_response
