"""Written by `python -m heirlog.protocol.generator` from specs/records/group_metadata_value.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ii = _Shape(">ii").unpack_from
_pack_ii = _Shape(">ii").pack
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class GroupMetadataValue(Message):
    __slots__ = (
        "protocol_type",
        "generation",
        "protocol",
        "leader",
        "current_state_timestamp",
        "members",
    )
    API_KEY = 2
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    class MemberMetadata(Struct):
        __slots__ = (
            "member_id",
            "group_instance_id",
            "client_id",
            "client_host",
            "rebalance_timeout",
            "session_timeout",
            "subscription",
            "assignment",
        )

        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b"",
            assignment: bytes = b"",
        ) -> None:
            self.member_id: str = member_id
            self.group_instance_id: str | None = group_instance_id
            self.client_id: str = client_id
            self.client_host: str = client_host
            self.rebalance_timeout: int = rebalance_timeout
            self.session_timeout: int = session_timeout
            self.subscription: bytes = subscription
            self.assignment: bytes = assignment

    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = None,
        leader: str | None = None,
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValue.MemberMetadata] = EMPTY,
    ) -> None:
        self.protocol_type: str = protocol_type
        self.generation: int = generation
        self.protocol: str | None = protocol
        self.leader: str | None = leader
        self.current_state_timestamp: int = current_state_timestamp
        self.members: list[GroupMetadataValue.MemberMetadata] = [] if members is EMPTY else members


def _read_member_metadata(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GroupMetadataValue.MemberMetadata], int]:
    items: list[GroupMetadataValue.MemberMetadata] = []
    if version >= 4:
        for _ in range(count):
            x = new(GroupMetadataValue.MemberMetadata)
            x.member_id, pos = p.read_compact_string(buf, pos)
            x.group_instance_id, pos = p.read_compact_nullable_string(buf, pos)
            x.client_id, pos = p.read_compact_string(buf, pos)
            x.client_host, pos = p.read_compact_string(buf, pos)
            (x.rebalance_timeout, x.session_timeout) = _unpack_ii(buf, pos)
            pos += 8
            x.subscription, pos = p.read_compact_bytes(buf, pos)
            x.assignment, pos = p.read_compact_bytes(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(GroupMetadataValue.MemberMetadata)
            x.member_id, pos = p.read_string(buf, pos)
            x.group_instance_id, pos = p.read_nullable_string(buf, pos)
            x.client_id, pos = p.read_string(buf, pos)
            x.client_host, pos = p.read_string(buf, pos)
            (x.rebalance_timeout, x.session_timeout) = _unpack_ii(buf, pos)
            pos += 8
            x.subscription, pos = p.read_bytes(buf, pos)
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(GroupMetadataValue.MemberMetadata)
            x.group_instance_id = None
            x.member_id, pos = p.read_string(buf, pos)
            x.client_id, pos = p.read_string(buf, pos)
            x.client_host, pos = p.read_string(buf, pos)
            (x.rebalance_timeout, x.session_timeout) = _unpack_ii(buf, pos)
            pos += 8
            x.subscription, pos = p.read_bytes(buf, pos)
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(GroupMetadataValue.MemberMetadata)
            x.group_instance_id = None
            x.rebalance_timeout = -1
            x.member_id, pos = p.read_string(buf, pos)
            x.client_id, pos = p.read_string(buf, pos)
            x.client_host, pos = p.read_string(buf, pos)
            (x.session_timeout,) = _unpack_i(buf, pos)
            pos += 4
            x.subscription, pos = p.read_bytes(buf, pos)
            x.assignment, pos = p.read_bytes(buf, pos)
            items.append(x)
    return items, pos


def _write_member_metadata(out: Out, items: Sequence[GroupMetadataValue.MemberMetadata], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.member_id))
            w(p.compact_nullable_string(x.group_instance_id))
            w(p.compact_string(x.client_id))
            w(p.compact_string(x.client_host))
            w(_pack_ii(x.rebalance_timeout, x.session_timeout))
            w(p.compact_byte_field(x.subscription))
            w(p.compact_byte_field(x.assignment))
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.string(x.member_id))
            w(p.nullable_string(x.group_instance_id))
            w(p.string(x.client_id))
            w(p.string(x.client_host))
            w(_pack_ii(x.rebalance_timeout, x.session_timeout))
            w(p.byte_field(x.subscription))
            w(p.byte_field(x.assignment))
    elif version >= 1:
        for x in items:
            w(p.string(x.member_id))
            w(p.string(x.client_id))
            w(p.string(x.client_host))
            w(_pack_ii(x.rebalance_timeout, x.session_timeout))
            w(p.byte_field(x.subscription))
            w(p.byte_field(x.assignment))
    else:
        for x in items:
            w(p.string(x.member_id))
            w(p.string(x.client_id))
            w(p.string(x.client_host))
            w(_pack_i(x.session_timeout))
            w(p.byte_field(x.subscription))
            w(p.byte_field(x.assignment))


def _read(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[GroupMetadataValue], int]:
    items: list[GroupMetadataValue] = []
    if version >= 4:
        for _ in range(count):
            x = new(GroupMetadataValue)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            (x.generation,) = _unpack_i(buf, pos)
            pos += 4
            x.protocol, pos = p.read_compact_nullable_string(buf, pos)
            x.leader, pos = p.read_compact_nullable_string(buf, pos)
            (x.current_state_timestamp,) = _unpack_q(buf, pos)
            pos += 8
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_member_metadata(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 2:
        for _ in range(count):
            x = new(GroupMetadataValue)
            x.protocol_type, pos = p.read_string(buf, pos)
            (x.generation,) = _unpack_i(buf, pos)
            pos += 4
            x.protocol, pos = p.read_nullable_string(buf, pos)
            x.leader, pos = p.read_nullable_string(buf, pos)
            (x.current_state_timestamp,) = _unpack_q(buf, pos)
            pos += 8
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_member_metadata(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(GroupMetadataValue)
            x.current_state_timestamp = -1
            x.protocol_type, pos = p.read_string(buf, pos)
            (x.generation,) = _unpack_i(buf, pos)
            pos += 4
            x.protocol, pos = p.read_nullable_string(buf, pos)
            x.leader, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Members")
            x.members, pos = _read_member_metadata(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write(out: Out, items: Sequence[GroupMetadataValue], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.protocol_type))
            w(_pack_i(x.generation))
            w(p.compact_nullable_string(x.protocol))
            w(p.compact_nullable_string(x.leader))
            w(_pack_q(x.current_state_timestamp))
            members = x.members
            n = len(members) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if members:
                _write_member_metadata(out, members, version)
            w(b"\0")
    elif version >= 2:
        for x in items:
            w(p.string(x.protocol_type))
            w(_pack_i(x.generation))
            w(p.nullable_string(x.protocol))
            w(p.nullable_string(x.leader))
            w(_pack_q(x.current_state_timestamp))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_member_metadata(out, members, version)
    else:
        for x in items:
            w(p.string(x.protocol_type))
            w(_pack_i(x.generation))
            w(p.nullable_string(x.protocol))
            w(p.nullable_string(x.leader))
            members = x.members
            w(_pack_i(len(members)))
            if members:
                _write_member_metadata(out, members, version)


GroupMetadataValue.READ = _read
GroupMetadataValue.WRITE = _write
