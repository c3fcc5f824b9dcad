"""Written by `python -m heirlog.protocol.generator` from specs/messages/sync_group.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class SyncGroupRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 4

    class SyncGroupRequestAssignment(Struct):
        __slots__ = (
            "member_id",
            "assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            assignment: bytes = b"",
        ) -> None:
            self.member_id: str = member_id
            self.assignment: bytes = assignment

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = [] if assignments is EMPTY else assignments


def _read_request_sync_group_request_assignment(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SyncGroupRequest.SyncGroupRequestAssignment], int]:
    items: list[SyncGroupRequest.SyncGroupRequestAssignment] = []
    if count > 1:
        p.spend(count)
    if version >= 4:
        for _ in range(count):
            x = new(SyncGroupRequest.SyncGroupRequestAssignment)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.assignment, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(SyncGroupRequest.SyncGroupRequestAssignment)
            x.member_id, pos = p.read_string(buf, pos)
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_request_sync_group_request_assignment(out: Out, items: Sequence[SyncGroupRequest.SyncGroupRequestAssignment], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_byte_field(x.assignment))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.byte_field(x.assignment))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SyncGroupRequest], int]:
    items: list[SyncGroupRequest] = []
    if version >= 5:
        for _ in range(count):
            x = new(SyncGroupRequest)
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_type, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_name, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_sync_group_request_assignment(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(SyncGroupRequest)
            x.protocol_type = None
            x.protocol_name = None
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_sync_group_request_assignment(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(SyncGroupRequest)
            x.protocol_type = None
            x.protocol_name = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_sync_group_request_assignment(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(SyncGroupRequest)
            x.group_instance_id = None
            x.protocol_type = None
            x.protocol_name = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.generation_id,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Assignments")
            x.assignments, pos = _read_request_sync_group_request_assignment(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[SyncGroupRequest], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_nullable_string(x.protocol_type))
            w(p.compact_nullable_string(x.protocol_name))
            assignments = x.assignments
            n = len(assignments) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if assignments:
                _write_request_sync_group_request_assignment(out, assignments, version)
            w(b"\0")
    elif version >= 4:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            assignments = x.assignments
            n = len(assignments) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if assignments:
                _write_request_sync_group_request_assignment(out, assignments, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            assignments = x.assignments
            w(_pack_i(len(assignments)))
            if assignments:
                _write_request_sync_group_request_assignment(out, assignments, version)
    else:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.generation_id))
            w(p.string(x.member_id))
            assignments = x.assignments
            w(_pack_i(len(assignments)))
            if assignments:
                _write_request_sync_group_request_assignment(out, assignments, version)


SyncGroupRequest.READ = _read_request
SyncGroupRequest.WRITE = _write_request


class SyncGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )
    API_KEY = 14
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[SyncGroupResponse], int]:
    items: list[SyncGroupResponse] = []
    if version >= 5:
        for _ in range(count):
            x = new(SyncGroupResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.protocol_type, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_name, pos = p.read_compact_nullable_string(buf, pos)
            x.assignment, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(SyncGroupResponse)
            x.protocol_type = None
            x.protocol_name = None
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.assignment, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(SyncGroupResponse)
            x.protocol_type = None
            x.protocol_name = None
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(SyncGroupResponse)
            x.throttle_time_ms = 0
            x.protocol_type = None
            x.protocol_name = None
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[SyncGroupResponse], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.protocol_type))
            w(p.compact_nullable_string(x.protocol_name))
            w(p.compact_byte_field(x.assignment))
            w(b"\0")
    elif version >= 4:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_byte_field(x.assignment))
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.byte_field(x.assignment))
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.byte_field(x.assignment))


SyncGroupResponse.READ = _read_response
SyncGroupResponse.WRITE = _write_response
