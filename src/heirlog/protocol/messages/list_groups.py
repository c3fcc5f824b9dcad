"""Written by `python -m heirlog.protocol.generator` from specs/messages/list_groups.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class ListGroupsRequest(Message):
    __slots__ = (
        "states_filter",
        "types_filter",
    )
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 3

    def __init__(
        self,
        *,
        states_filter: list[str] = EMPTY,
        types_filter: list[str] = EMPTY,
    ) -> None:
        self.states_filter: list[str] = [] if states_filter is EMPTY else states_filter
        self.types_filter: list[str] = [] if types_filter is EMPTY else types_filter


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListGroupsRequest], int]:
    items: list[ListGroupsRequest] = []
    if version >= 5:
        for _ in range(count):
            x = new(ListGroupsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("StatesFilter")
            x.states_filter, pos = p.read_compact_strings(buf, pos, n)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("TypesFilter")
            x.types_filter, pos = p.read_compact_strings(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(ListGroupsRequest)
            x.types_filter = []
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("StatesFilter")
            x.states_filter, pos = p.read_compact_strings(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(ListGroupsRequest)
            x.states_filter = []
            x.types_filter = []
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListGroupsRequest)
            x.states_filter = []
            x.types_filter = []
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ListGroupsRequest], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            states_filter = x.states_filter
            n = len(states_filter) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if states_filter:
                w(p.compact_strings(states_filter))
            types_filter = x.types_filter
            n = len(types_filter) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if types_filter:
                w(p.compact_strings(types_filter))
            w(b"\0")
    elif version >= 4:
        for x in items:
            states_filter = x.states_filter
            n = len(states_filter) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if states_filter:
                w(p.compact_strings(states_filter))
            w(b"\0")
    elif version >= 3:
        for _ in items:
            w(b"\0")
    else:
        pass


ListGroupsRequest.READ = _read_request
ListGroupsRequest.WRITE = _write_request


class ListGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )
    API_KEY = 16
    MIN_VERSION = 0
    MAX_VERSION = 5
    FLEXIBLE_VERSION = 3

    class ListedGroup(Struct):
        __slots__ = (
            "group_id",
            "protocol_type",
            "group_state",
            "group_type",
        )

        def __init__(
            self,
            *,
            group_id: str = "",
            protocol_type: str = "",
            group_state: str = "",
            group_type: str = "",
        ) -> None:
            self.group_id: str = group_id
            self.protocol_type: str = protocol_type
            self.group_state: str = group_state
            self.group_type: str = group_type

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListGroupsResponse.ListedGroup] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.groups: list[ListGroupsResponse.ListedGroup] = [] if groups is EMPTY else groups


def _read_response_listed_group(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListGroupsResponse.ListedGroup], int]:
    items: list[ListGroupsResponse.ListedGroup] = []
    if version >= 5:
        for _ in range(count):
            x = new(ListGroupsResponse.ListedGroup)
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            x.group_state, pos = p.read_compact_string(buf, pos)
            x.group_type, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 4:
        for _ in range(count):
            x = new(ListGroupsResponse.ListedGroup)
            x.group_type = ""
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            x.group_state, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(ListGroupsResponse.ListedGroup)
            x.group_state = ""
            x.group_type = ""
            x.group_id, pos = p.read_compact_string(buf, pos)
            x.protocol_type, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListGroupsResponse.ListedGroup)
            x.group_state = ""
            x.group_type = ""
            x.group_id, pos = p.read_string(buf, pos)
            x.protocol_type, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_listed_group(out: Out, items: Sequence[ListGroupsResponse.ListedGroup], version: int) -> None:
    w = out.small.append
    if version >= 5:
        for x in items:
            w(p.compact_string(x.group_id))
            w(p.compact_string(x.protocol_type))
            w(p.compact_string(x.group_state))
            w(p.compact_string(x.group_type))
            w(b"\0")
    elif version >= 4:
        for x in items:
            w(p.compact_string(x.group_id))
            w(p.compact_string(x.protocol_type))
            w(p.compact_string(x.group_state))
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.compact_string(x.group_id))
            w(p.compact_string(x.protocol_type))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.group_id))
            w(p.string(x.protocol_type))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListGroupsResponse], int]:
    items: list[ListGroupsResponse] = []
    if version >= 3:
        for _ in range(count):
            x = new(ListGroupsResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_listed_group(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(ListGroupsResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_listed_group(buf, pos, n, version)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListGroupsResponse)
            x.throttle_time_ms = 0
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Groups")
            x.groups, pos = _read_response_listed_group(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ListGroupsResponse], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            groups = x.groups
            n = len(groups) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups:
                _write_response_listed_group(out, groups, version)
            w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                _write_response_listed_group(out, groups, version)
    else:
        for x in items:
            w(_pack_h(x.error_code))
            groups = x.groups
            w(_pack_i(len(groups)))
            if groups:
                _write_response_listed_group(out, groups, version)


ListGroupsResponse.READ = _read_response
ListGroupsResponse.WRITE = _write_response
