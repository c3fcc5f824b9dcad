"""Written by `python -m heirlog.protocol.generator` from specs/messages/heartbeat.spec. Do not edit."""

# fmt: off
# ruff: noqa: RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import Message, Out, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack
_unpack_ihB = _Shape(">ihB").unpack_from
_pack_ihx = _Shape(">ihx").pack


class HeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    )
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[HeartbeatRequest], int]:
    items: list[HeartbeatRequest] = []
    if version >= 4:
        for _ in range(count):
            x = new(HeartbeatRequest)
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(HeartbeatRequest)
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(HeartbeatRequest)
            x.group_instance_id = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[HeartbeatRequest], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
    else:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.string(x.member_id))


HeartbeatRequest.READ = _read_request
HeartbeatRequest.WRITE = _write_request


class HeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    API_KEY = 12
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[HeartbeatResponse], int]:
    items: list[HeartbeatResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(HeartbeatResponse)
            (x.throttle_time_ms, x.error_code, tags) = _unpack_ihB(buf, pos)
            pos += 7
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(HeartbeatResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            items.append(x)
    else:
        for _ in range(count):
            x = new(HeartbeatResponse)
            x.throttle_time_ms = 0
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[HeartbeatResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_ihx(x.throttle_time_ms, x.error_code))
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
    else:
        for x in items:
            w(_pack_h(x.error_code))


HeartbeatResponse.READ = _read_response
HeartbeatResponse.WRITE = _write_response
