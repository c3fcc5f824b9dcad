"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_groups.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_oB = _Shape(">?B").unpack_from
_pack_ox = _Shape(">?x").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_pack_ix = _Shape(">ix").pack


class DescribeGroupsRequest(Message):
    __slots__ = (
        "groups",
        "include_authorized_operations",
    )
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 5

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups: list[str] = [] if groups is EMPTY else groups
        self.include_authorized_operations: bool = include_authorized_operations


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeGroupsRequest], int]:
    items: list[DescribeGroupsRequest] = []
    if version >= 5:
        for _ in range(count):
            x = new(DescribeGroupsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = p.read_compact_strings(buf, pos, n)
            (x.include_authorized_operations, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(DescribeGroupsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = p.read_strings(buf, pos, n)
            (x.include_authorized_operations,) = _unpack_o(buf, pos)
            pos += 1
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeGroupsRequest)
            x.include_authorized_operations = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = p.read_strings(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeGroupsRequest], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            groups = x.groups
            n = len(groups) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups:
                w(p.compact_strings(groups))
            w(_pack_ox(x.include_authorized_operations))
    elif version >= 3:
        for x in items:
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                w(p.strings(groups))
            w(_pack_o(x.include_authorized_operations))
    else:
        for x in items:
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                w(p.strings(groups))


DescribeGroupsRequest.READ = _read_request
DescribeGroupsRequest.WRITE = _write_request


class DescribeGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    API_KEY = 15
    MIN_VERSION = 0
    MAX_VERSION = 6
    FLEXIBLE_VERSION = 5

    class DescribedGroup(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "group_id",
            "group_state",
            "protocol_type",
            "protocol_data",
            "members",
            "authorized_operations",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            protocol_type: str = "",
            protocol_data: str = "",
            members: list[DescribeGroupsResponse.DescribedGroupMember] = EMPTY,
            authorized_operations: int = -2147483648,
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.group_id: str = group_id
            self.group_state: str = group_state
            self.protocol_type: str = protocol_type
            self.protocol_data: str = protocol_data
            self.members: list[DescribeGroupsResponse.DescribedGroupMember] = [] if members is EMPTY else members
            self.authorized_operations: int = authorized_operations

    class DescribedGroupMember(Struct):
        __slots__ = (
            "member_id",
            "group_instance_id",
            "client_id",
            "client_host",
            "member_metadata",
            "member_assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            member_metadata: bytes = b"",
            member_assignment: bytes = b"",
        ) -> None:
            self.member_id: str = member_id
            self.group_instance_id: str | None = group_instance_id
            self.client_id: str = client_id
            self.client_host: str = client_host
            self.member_metadata: bytes = member_metadata
            self.member_assignment: bytes = member_assignment

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeGroupsResponse.DescribedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribeGroupsResponse.DescribedGroup] = [] if groups is EMPTY else groups


def _read_response_described_group_member(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeGroupsResponse.DescribedGroupMember], int]:
    items: list[DescribeGroupsResponse.DescribedGroupMember] = []
    if version >= 5:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroupMember)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.client_id, pos = p.read_compact_string(buf, pos)
            x.client_host, pos = p.read_compact_string(buf, pos)
            x.member_metadata, pos = p.read_compact_bytes(buf, pos)
            x.member_assignment, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroupMember)
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            x.client_id, pos = p.read_string(buf, pos)
            x.client_host, pos = p.read_string(buf, pos)
            x.member_metadata, pos = p.read_bytes(buf, pos)
            x.member_assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroupMember)
            x.group_instance_id = None
            x.member_id, pos = p.read_string(buf, pos)
            x.client_id, pos = p.read_string(buf, pos)
            x.client_host, pos = p.read_string(buf, pos)
            x.member_metadata, pos = p.read_bytes(buf, pos)
            x.member_assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_response_described_group_member(out: Out, items: Sequence[DescribeGroupsResponse.DescribedGroupMember], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_string(x.client_id))
            w(p.compact_string(x.client_host))
            w(p.compact_byte_field(x.member_metadata))
            w(p.compact_byte_field(x.member_assignment))
            w(b"\0")
    elif version >= 4:
        for x in items:
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            w(p.string(x.client_id))
            w(p.string(x.client_host))
            w(p.byte_field(x.member_metadata))
            w(p.byte_field(x.member_assignment))
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.string(x.client_id))
            w(p.string(x.client_host))
            w(p.byte_field(x.member_metadata))
            w(p.byte_field(x.member_assignment))


def _read_response_described_group(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeGroupsResponse.DescribedGroup], int]:
    items: list[DescribeGroupsResponse.DescribedGroup] = []
    if version >= 6:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroup)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.group_state, pos = p.read_compact_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            x.protocol_data, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_described_group_member(buf, pos, n, version)
            (x.authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 5:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroup)
            x.error_message = None
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.group_state, pos = p.read_compact_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            x.protocol_data, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_described_group_member(buf, pos, n, version)
            (x.authorized_operations, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroup)
            x.error_message = None
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.group_id, pos = p.read_string(buf, pos)
            x.group_state, pos = p.read_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            x.protocol_data, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_described_group_member(buf, pos, n, version)
            (x.authorized_operations,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeGroupsResponse.DescribedGroup)
            x.error_message = None
            x.authorized_operations = -2147483648
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.group_id, pos = p.read_string(buf, pos)
            x.group_state, pos = p.read_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            x.protocol_data, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_response_described_group_member(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_described_group(out: Out, items: Sequence[DescribeGroupsResponse.DescribedGroup], version: int) -> None:
    w = out.small.append
    if version >= 6:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(p.compact_string(x.group_id))
            w(p.compact_string(x.group_state))
            w(p.compact_string(x.protocol_type))
            w(p.compact_string(x.protocol_data))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_described_group_member(out, members, version)
            w(_pack_ix(x.authorized_operations))
    elif version >= 5:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_string(x.group_id))
            w(p.compact_string(x.group_state))
            w(p.compact_string(x.protocol_type))
            w(p.compact_string(x.protocol_data))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_response_described_group_member(out, members, version)
            w(_pack_ix(x.authorized_operations))
    elif version >= 3:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.string(x.group_id))
            w(p.string(x.group_state))
            w(p.string(x.protocol_type))
            w(p.string(x.protocol_data))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_response_described_group_member(out, members, version)
            w(_pack_i(x.authorized_operations))
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.string(x.group_id))
            w(p.string(x.group_state))
            w(p.string(x.protocol_type))
            w(p.string(x.protocol_data))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_response_described_group_member(out, members, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeGroupsResponse], int]:
    items: list[DescribeGroupsResponse] = []
    if version >= 5:
        for _ in range(count):
            x = new(DescribeGroupsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_described_group(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(DescribeGroupsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_described_group(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeGroupsResponse)
            x.throttle_time_ms = 0
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_described_group(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeGroupsResponse], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            groups = x.groups
            n = len(groups) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups:
                _write_response_described_group(out, groups, version)
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                _write_response_described_group(out, groups, version)
    else:
        for x in items:
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                _write_response_described_group(out, groups, version)


DescribeGroupsResponse.READ = _read_response
DescribeGroupsResponse.WRITE = _write_response
