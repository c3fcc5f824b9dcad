"""Written by `python -m heirlog.protocol.generator` from specs/messages/leave_group.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hB = _Shape(">hB").unpack_from
_pack_hx = _Shape(">hx").pack
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class LeaveGroupRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "members",
    )
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 4

    class MemberIdentity(Struct):
        __slots__ = (
            "member_id",
            "group_instance_id",
            "reason",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            reason: str | None = None,
        ) -> None:
            self.member_id: str = member_id
            self.group_instance_id: str | None = group_instance_id
            self.reason: str | None = reason

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[LeaveGroupRequest.MemberIdentity] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: list[LeaveGroupRequest.MemberIdentity] = [] if members is EMPTY else members


def _read_request_member_identity(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaveGroupRequest.MemberIdentity], int]:
    items: list[LeaveGroupRequest.MemberIdentity] = []
    if count > 1:
        p.spend(count)
    if version >= 5:
        for _ in range(count):
            x = new(LeaveGroupRequest.MemberIdentity)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.reason, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(LeaveGroupRequest.MemberIdentity)
            x.reason = None
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(LeaveGroupRequest.MemberIdentity)
            x.reason = None
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request_member_identity(out: Out, items: Sequence[LeaveGroupRequest.MemberIdentity], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_nullable_string(x.reason))
            w(b"\0")
    elif version >= 4:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaveGroupRequest], int]:
    items: list[LeaveGroupRequest] = []
    if version >= 4:
        for _ in range(count):
            x = new(LeaveGroupRequest)
            x.member_id = ""
            x.group_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_request_member_identity(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(LeaveGroupRequest)
            x.member_id = ""
            x.group_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_request_member_identity(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(LeaveGroupRequest)
            x.members = []
            x.group_id, pos = p.read_string(buf, pos)
            x.member_id, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[LeaveGroupRequest], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.group_id))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_request_member_identity(out, members, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.string(x.group_id))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_request_member_identity(out, members, version)
    else:
        for x in items:
            w(p.string(x.group_id))
            w(p.string(x.member_id))


LeaveGroupRequest.READ = _read_request
LeaveGroupRequest.WRITE = _write_request


class LeaveGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )
    API_KEY = 13
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 4

    class MemberResponse(Struct):
        __slots__ = (
            "member_id",
            "group_instance_id",
            "error_code",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            error_code: int = 0,
        ) -> None:
            self.member_id: str = member_id
            self.group_instance_id: str | None = group_instance_id
            self.error_code: int = error_code

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[LeaveGroupResponse.MemberResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[LeaveGroupResponse.MemberResponse] = [] if members is EMPTY else members


def _read_response_member_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaveGroupResponse.MemberResponse], int]:
    items: list[LeaveGroupResponse.MemberResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(LeaveGroupResponse.MemberResponse)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(LeaveGroupResponse.MemberResponse)
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_member_response(out: Out, items: Sequence[LeaveGroupResponse.MemberResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(_pack_hx(x.error_code))
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            w(_pack_h(x.error_code))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[LeaveGroupResponse], int]:
    items: list[LeaveGroupResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(LeaveGroupResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_member_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(LeaveGroupResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_member_response(buf, pos, n, version)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(LeaveGroupResponse)
            x.members = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            items.append(x)
    else:
        for _ in range(count):
            x = new(LeaveGroupResponse)
            x.throttle_time_ms = 0
            x.members = []
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[LeaveGroupResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_member_response(out, members, version)
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_response_member_response(out, members, version)
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
    else:
        for x in items:
            w(_pack_h(x.error_code))


LeaveGroupResponse.READ = _read_response
LeaveGroupResponse.WRITE = _write_response
