"""Frames: the length, the header and the message of a request or a response.

    request     length int32 | api key int16 | version int16 | correlation id int32 | client id | tags if flexible
    response    length int32 | correlation id int32 | tags if flexible

Two exceptions that every client relies on. The client id of a request header keeps the old string form even in a
flexible header. The response header of ApiVersions is never flexible, because a client asks before it knows what the
broker speaks; for the same reason an ApiVersions request of a version from the future must still yield a header, so
that it can be answered with UNSUPPORTED_VERSION.

Reading takes frames without the length (the transport has used it); writing puts it in front.

Source: KIP-482, KIP-511.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from heirlog.env import Buffer
from heirlog.protocol.api import APIS, ApiKey, api, request_class, response_class
from heirlog.protocol.primitives import (
    ITEMS_MAX,
    Malformed,
    Message,
    Part,
    allow,
    decode,
    decode_with_end,
    encode,
    part_size,
    read_nullable_string,
    skip_tags,
    written,
)

__all__ = [
    "RequestHeader",
    "decode",
    "decode_request",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "parse_header",
]

_FIXED = struct.Struct(">hhi")
_AFTER_FIXED = _FIXED.size
_LENGTH = struct.Struct(">i")
_RESPONSE = struct.Struct(">ii")
_RESPONSE_FLEXIBLE = struct.Struct(">iix")
_REQUEST = struct.Struct(">ihhih")

API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""Its response header never changes, so that a client can read the answer to an unknown version."""


@dataclass(slots=True)
class RequestHeader:
    """A header is never changed. It is not frozen because freezing costs a microsecond per request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def parse_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """The header and where the message begins. The version is not checked: that answer is the caller's.

    Raises UnknownApi, and Malformed for a frame that ends too early.
    """
    try:
        api_key, api_version, correlation_id = _FIXED.unpack_from(frame)
    except struct.error as error:
        raise Malformed(f"a request of {len(frame)} bytes is shorter than its header") from error
    known = APIS.get(api_key) or api(api_key)
    try:
        client_id, position = read_nullable_string(frame, _AFTER_FIXED)
        if api_version >= known.flexible_version:
            tags = frame[position]
            position = _skip_header_tags(frame, position + 1, tags) if tags else position + 1
        if position > len(frame):
            raise Malformed(f"the header of a {known.name} request ends in the middle of a field")
    except (struct.error, IndexError, UnicodeDecodeError, Malformed) as error:
        if api_key == API_VERSIONS and not known.speaks(api_version):
            return RequestHeader(api_key, api_version, correlation_id, None), len(frame)
        raise Malformed(f"the header of a {known.name} request v{api_version} is broken: {error}") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def _skip_header_tags(frame: memoryview, position: int, first: int) -> int:
    allow(ITEMS_MAX)
    try:
        return skip_tags(frame, position, first)
    finally:
        allow(None)


def decode_request(header: RequestHeader, frame: memoryview, position: int) -> Message:
    """Raises UnsupportedVersion, Malformed; the latter also for more than `ITEMS_MAX` items."""
    cls = request_class(header.api_key)
    allow(ITEMS_MAX)
    try:
        return decode_with_end(cls, frame, header.api_version, position)[0]
    finally:
        allow(None)


def encode_request(header: RequestHeader, message: Message) -> list[Part]:
    """Length, header and message. Raises UnsupportedVersion."""
    client_id = header.client_id
    raw = b"" if client_id is None else client_id.encode()
    tags = b"\0" if header.api_version >= message.FLEXIBLE_VERSION else b""
    out = written(message, header.api_version)
    size = _REQUEST.size - 4 + len(raw) + len(tags)
    raw_size = -1 if client_id is None else len(raw)
    if not out.parts:  # most requests
        body = b"".join(out.small)
        size += len(body)
        head = _REQUEST.pack(size, header.api_key, header.api_version, header.correlation_id, raw_size)
        return [head + raw + tags + body]
    parts = out.finish()
    size += sum(map(part_size, parts))
    head = _REQUEST.pack(size, header.api_key, header.api_version, header.correlation_id, raw_size)
    return _prepend(head + raw + tags, parts)


def encode_response(api_key: int, api_version: int, correlation_id: int, message: Message) -> list[Part]:
    """Length, header and message; regions stay regions and are counted. Raises UnsupportedVersion."""
    out = written(message, api_version)
    flexible = api_version >= message.FLEXIBLE_VERSION and api_key != API_VERSIONS
    shape = _RESPONSE_FLEXIBLE if flexible else _RESPONSE
    if not out.parts:  # most answers
        body = b"".join(out.small)
        return [shape.pack(shape.size - 4 + len(body), correlation_id) + body]
    parts = out.finish()
    size = shape.size - 4 + sum(map(part_size, parts))
    return _prepend(shape.pack(size, correlation_id), parts)


def _prepend(head: bytes, parts: list[Part]) -> list[Part]:
    if not parts:
        return [head]
    first = parts[0]
    # the first part is what was joined from small pieces: one copy of it is cheaper than one more part to send
    if isinstance(first, bytes):
        parts[0] = head + first
    else:
        parts.insert(0, head)
    return parts


def decode_response(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Message]:
    """Correlation id and message; the versions must be those of the request. Raises Malformed."""
    buf = frame if isinstance(frame, memoryview) else memoryview(frame)
    known = APIS.get(api_key) or api(api_key)
    position = 4
    try:
        (correlation_id,) = _LENGTH.unpack_from(buf)
        if api_version >= known.flexible_version and api_key != API_VERSIONS:
            position = skip_tags(buf, 5, buf[4])
    except (struct.error, IndexError) as error:
        raise Malformed(f"a {known.name} response of {len(buf)} bytes is shorter than its header") from error
    return correlation_id, decode_with_end(response_class(api_key), buf, api_version, position)[0]
