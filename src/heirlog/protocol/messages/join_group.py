"""Written by `python -m heirlog.protocol.generator` from specs/messages/join_group.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_hi = _Shape(">hi").unpack_from
_pack_hi = _Shape(">hi").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ihi = _Shape(">ihi").unpack_from
_pack_ihi = _Shape(">ihi").pack
_unpack_ii = _Shape(">ii").unpack_from
_pack_ii = _Shape(">ii").pack


class JoinGroupRequest(Message):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_VERSION = 6

    class JoinGroupRequestProtocol(Struct):
        __slots__ = (
            "name",
            "metadata",
        )

        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
        ) -> None:
            self.name: str = name
            self.metadata: bytes = metadata

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = [] if protocols is EMPTY else protocols
        self.reason: str | None = reason


def _read_request_join_group_request_protocol(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[JoinGroupRequest.JoinGroupRequestProtocol], int]:
    items: list[JoinGroupRequest.JoinGroupRequestProtocol] = []
    if count > 1:
        p.spend(count)
    if version >= 6:
        for _ in range(count):
            x = new(JoinGroupRequest.JoinGroupRequestProtocol)
            x.name, pos = p.read_compact_string(buf, pos)
            x.metadata, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(JoinGroupRequest.JoinGroupRequestProtocol)
            x.name, pos = p.read_string(buf, pos)
            x.metadata, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_request_join_group_request_protocol(out: Out, items: Sequence[JoinGroupRequest.JoinGroupRequestProtocol], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.name))
            w(p.compact_byte_field(x.metadata))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(p.byte_field(x.metadata))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[JoinGroupRequest], int]:
    items: list[JoinGroupRequest] = []
    if version >= 8:
        for _ in range(count):
            x = new(JoinGroupRequest)
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.session_timeout_ms, x.rebalance_timeout_ms) = _unpack_ii(buf, pos)
            pos += 8
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Protocols")
            x.protocols, pos = _read_request_join_group_request_protocol(buf, pos, n, version)
            x.reason, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(JoinGroupRequest)
            x.reason = None
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.session_timeout_ms, x.rebalance_timeout_ms) = _unpack_ii(buf, pos)
            pos += 8
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Protocols")
            x.protocols, pos = _read_request_join_group_request_protocol(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(JoinGroupRequest)
            x.reason = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.session_timeout_ms, x.rebalance_timeout_ms) = _unpack_ii(buf, pos)
            pos += 8
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Protocols")
            x.protocols, pos = _read_request_join_group_request_protocol(buf, pos, n, version)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(JoinGroupRequest)
            x.group_instance_id = None
            x.reason = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.session_timeout_ms, x.rebalance_timeout_ms) = _unpack_ii(buf, pos)
            pos += 8
            x.member_id, pos = p.read_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Protocols")
            x.protocols, pos = _read_request_join_group_request_protocol(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(JoinGroupRequest)
            x.rebalance_timeout_ms = -1
            x.group_instance_id = None
            x.reason = None
            x.group_id, pos = p.read_string(buf, pos)
            (x.session_timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            x.member_id, pos = p.read_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Protocols")
            x.protocols, pos = _read_request_join_group_request_protocol(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[JoinGroupRequest], version: int) -> None:
    w = out.small.append
    if version >= 8:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_ii(x.session_timeout_ms, x.rebalance_timeout_ms))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_string(x.protocol_type))
            protocols = x.protocols
            n = len(protocols) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if protocols:
                _write_request_join_group_request_protocol(out, protocols, version)
            w(p.compact_nullable_string(x.reason))
            w(b"\0")
    elif version >= 6:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_ii(x.session_timeout_ms, x.rebalance_timeout_ms))
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_string(x.protocol_type))
            protocols = x.protocols
            n = len(protocols) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if protocols:
                _write_request_join_group_request_protocol(out, protocols, version)
            w(b"\0")
    elif version >= 5:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_ii(x.session_timeout_ms, x.rebalance_timeout_ms))
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            w(p.string(x.protocol_type))
            protocols = x.protocols
            w(_pack_i(len(protocols)))
            if protocols:
                _write_request_join_group_request_protocol(out, protocols, version)
    elif version >= 1:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_ii(x.session_timeout_ms, x.rebalance_timeout_ms))
            w(p.string(x.member_id))
            w(p.string(x.protocol_type))
            protocols = x.protocols
            w(_pack_i(len(protocols)))
            if protocols:
                _write_request_join_group_request_protocol(out, protocols, version)
    else:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_i(x.session_timeout_ms))
            w(p.string(x.member_id))
            w(p.string(x.protocol_type))
            protocols = x.protocols
            w(_pack_i(len(protocols)))
            if protocols:
                _write_request_join_group_request_protocol(out, protocols, version)


JoinGroupRequest.READ = _read_request
JoinGroupRequest.WRITE = _write_request


class JoinGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    API_KEY = 11
    MIN_VERSION = 0
    MAX_VERSION = 9
    FLEXIBLE_VERSION = 6

    class JoinGroupResponseMember(Struct):
        __slots__ = (
            "member_id",
            "group_instance_id",
            "metadata",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            metadata: bytes = b"",
        ) -> None:
            self.member_id: str = member_id
            self.group_instance_id: str | None = group_instance_id
            self.metadata: bytes = metadata

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = '',
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponse.JoinGroupResponseMember] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponse.JoinGroupResponseMember] = [] if members is EMPTY else members


def _read_response_join_group_response_member(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[JoinGroupResponse.JoinGroupResponseMember], int]:
    items: list[JoinGroupResponse.JoinGroupResponseMember] = []
    if version >= 6:
        for _ in range(count):
            x = new(JoinGroupResponse.JoinGroupResponseMember)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.metadata, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(JoinGroupResponse.JoinGroupResponseMember)
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            x.metadata, pos = p.read_bytes(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(JoinGroupResponse.JoinGroupResponseMember)
            x.group_instance_id = None
            x.member_id, pos = p.read_string(buf, pos)
            x.metadata, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_response_join_group_response_member(out: Out, items: Sequence[JoinGroupResponse.JoinGroupResponseMember], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_byte_field(x.metadata))
            w(b"\0")
    elif version >= 5:
        for x in items:
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            w(p.byte_field(x.metadata))
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.byte_field(x.metadata))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[JoinGroupResponse], int]:
    items: list[JoinGroupResponse] = []
    if version >= 9:
        for _ in range(count):
            x = new(JoinGroupResponse)
            (x.throttle_time_ms, x.error_code, x.generation_id) = _unpack_ihi(buf, pos)
            pos += 10
            x.protocol_type, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_name, pos = p.read_compact_nullable_string(buf, pos)
            x.leader, pos = p.read_compact_string(buf, pos)
            (x.skip_assignment,) = _unpack_o(buf, pos)
            pos += 1
            x.member_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_join_group_response_member(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 7:
        for _ in range(count):
            x = new(JoinGroupResponse)
            x.skip_assignment = False
            (x.throttle_time_ms, x.error_code, x.generation_id) = _unpack_ihi(buf, pos)
            pos += 10
            x.protocol_type, pos = p.read_compact_nullable_string(buf, pos)
            x.protocol_name, pos = p.read_compact_nullable_string(buf, pos)
            x.leader, pos = p.read_compact_string(buf, pos)
            x.member_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_join_group_response_member(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 6:
        for _ in range(count):
            x = new(JoinGroupResponse)
            x.protocol_type = None
            x.skip_assignment = False
            (x.throttle_time_ms, x.error_code, x.generation_id) = _unpack_ihi(buf, pos)
            pos += 10
            x.protocol_name, pos = p.read_compact_string(buf, pos)
            x.leader, pos = p.read_compact_string(buf, pos)
            x.member_id, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_join_group_response_member(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(JoinGroupResponse)
            x.protocol_type = None
            x.skip_assignment = False
            (x.throttle_time_ms, x.error_code, x.generation_id) = _unpack_ihi(buf, pos)
            pos += 10
            x.protocol_name, pos = p.read_string(buf, pos)
            x.leader, pos = p.read_string(buf, pos)
            x.member_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_join_group_response_member(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(JoinGroupResponse)
            x.throttle_time_ms = 0
            x.protocol_type = None
            x.skip_assignment = False
            (x.error_code, x.generation_id) = _unpack_hi(buf, pos)
            pos += 6
            x.protocol_name, pos = p.read_string(buf, pos)
            x.leader, pos = p.read_string(buf, pos)
            x.member_id, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_join_group_response_member(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[JoinGroupResponse], version: int) -> None:
    w = out.small.append
    if version >= 9:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.generation_id))
            w(p.compact_nullable_string(x.protocol_type))
            w(p.compact_nullable_string(x.protocol_name))
            w(p.compact_string(x.leader))
            w(_pack_o(x.skip_assignment))
            w(p.compact_string(x.member_id))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_join_group_response_member(out, members, version)
            w(b"\0")
    elif version >= 7:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.generation_id))
            w(p.compact_nullable_string(x.protocol_type))
            w(p.compact_nullable_string(x.protocol_name))
            w(p.compact_string(x.leader))
            w(p.compact_string(x.member_id))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_join_group_response_member(out, members, version)
            w(b"\0")
    elif version >= 6:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.generation_id))
            protocol_name_ = p.require(x.protocol_name, "ProtocolName")
            w(p.compact_string(protocol_name_))
            w(p.compact_string(x.leader))
            w(p.compact_string(x.member_id))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_join_group_response_member(out, members, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(_pack_ihi(x.throttle_time_ms, x.error_code, x.generation_id))
            protocol_name_ = p.require(x.protocol_name, "ProtocolName")
            w(p.string(protocol_name_))
            w(p.string(x.leader))
            w(p.string(x.member_id))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_response_join_group_response_member(out, members, version)
    else:
        for x in items:
            w(_pack_hi(x.error_code, x.generation_id))
            protocol_name_ = p.require(x.protocol_name, "ProtocolName")
            w(p.string(protocol_name_))
            w(p.string(x.leader))
            w(p.string(x.member_id))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_response_join_group_response_member(out, members, version)


JoinGroupResponse.READ = _read_response
JoinGroupResponse.WRITE = _write_response
