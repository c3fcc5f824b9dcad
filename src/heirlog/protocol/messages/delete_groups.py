"""Written by `python -m heirlog.protocol.generator` from specs/messages/delete_groups.spec. Do not edit."""

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
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack


class DeleteGroupsRequest(Message):
    __slots__ = (
        "groups_names",
    )
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    def __init__(
        self,
        *,
        groups_names: list[str] = EMPTY,
    ) -> None:
        self.groups_names: list[str] = [] if groups_names is EMPTY else groups_names


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteGroupsRequest], int]:
    items: list[DeleteGroupsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteGroupsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("GroupsNames")
            x.groups_names, pos = p.read_compact_strings(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteGroupsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("GroupsNames")
            x.groups_names, pos = p.read_strings(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DeleteGroupsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            groups_names = x.groups_names
            n = len(groups_names) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if groups_names:
                w(p.compact_strings(groups_names))
            w(b"\0")
    else:
        for x in items:
            groups_names = x.groups_names
            w(_pack_i(len(groups_names)))
            if groups_names:
                w(p.strings(groups_names))


DeleteGroupsRequest.READ = _read_request
DeleteGroupsRequest.WRITE = _write_request


class DeleteGroupsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 42
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    class DeletableGroupResult(Struct):
        __slots__ = (
            "group_id",
            "error_code",
        )

        def __init__(
            self,
            *,
            group_id: str = "",
            error_code: int = 0,
        ) -> None:
            self.group_id: str = group_id
            self.error_code: int = error_code

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DeleteGroupsResponse.DeletableGroupResult] = [] if results is EMPTY else results


def _read_response_deletable_group_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteGroupsResponse.DeletableGroupResult], int]:
    items: list[DeleteGroupsResponse.DeletableGroupResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteGroupsResponse.DeletableGroupResult)
            x.group_id, pos = p.read_compact_string(buf, pos)
            (x.error_code, tags) = _unpack_hB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteGroupsResponse.DeletableGroupResult)
            x.group_id, pos = p.read_string(buf, pos)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_deletable_group_result(out: Out, items: Sequence[DeleteGroupsResponse.DeletableGroupResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.group_id))
            w(_pack_hx(x.error_code))
    else:
        for x in items:
            w(p.string(x.group_id))
            w(_pack_h(x.error_code))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteGroupsResponse], int]:
    items: list[DeleteGroupsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteGroupsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_deletable_group_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteGroupsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_deletable_group_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DeleteGroupsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_deletable_group_result(out, results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            w(_pack_i(len(results)))
            if results:
                _write_response_deletable_group_result(out, results, version)


DeleteGroupsResponse.READ = _read_response
DeleteGroupsResponse.WRITE = _write_response
