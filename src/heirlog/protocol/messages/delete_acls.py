"""Written by `python -m heirlog.protocol.generator` from specs/messages/delete_acls.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_bb = _Shape(">bb").unpack_from
_pack_bb = _Shape(">bb").pack
_unpack_bbB = _Shape(">bbB").unpack_from
_pack_bbx = _Shape(">bbx").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack


class DeleteAclsRequest(Message):
    __slots__ = (
        "filters",
    )
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class DeleteAclsFilter(Struct):
        __slots__ = (
            "resource_type_filter",
            "resource_name_filter",
            "pattern_type_filter",
            "principal_filter",
            "host_filter",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            resource_type_filter: int = 0,
            resource_name_filter: str | None = None,
            pattern_type_filter: int = 3,
            principal_filter: str | None = None,
            host_filter: str | None = None,
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type_filter: int = resource_type_filter
            self.resource_name_filter: str | None = resource_name_filter
            self.pattern_type_filter: int = pattern_type_filter
            self.principal_filter: str | None = principal_filter
            self.host_filter: str | None = host_filter
            self.operation: int = operation
            self.permission_type: int = permission_type

    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = EMPTY,
    ) -> None:
        self.filters: list[DeleteAclsRequest.DeleteAclsFilter] = [] if filters is EMPTY else filters


def _read_request_delete_acls_filter(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteAclsRequest.DeleteAclsFilter], int]:
    items: list[DeleteAclsRequest.DeleteAclsFilter] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(DeleteAclsRequest.DeleteAclsFilter)
            (x.resource_type_filter,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name_filter, pos = p.read_compact_nullable_string(buf, pos)
            (x.pattern_type_filter,) = _unpack_b(buf, pos)
            pos += 1
            x.principal_filter, pos = p.read_compact_nullable_string(buf, pos)
            x.host_filter, pos = p.read_compact_nullable_string(buf, pos)
            (x.operation, x.permission_type, tags) = _unpack_bbB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteAclsRequest.DeleteAclsFilter)
            (x.resource_type_filter,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name_filter, pos = p.read_nullable_string(buf, pos)
            (x.pattern_type_filter,) = _unpack_b(buf, pos)
            pos += 1
            x.principal_filter, pos = p.read_nullable_string(buf, pos)
            x.host_filter, pos = p.read_nullable_string(buf, pos)
            (x.operation, x.permission_type) = _unpack_bb(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_request_delete_acls_filter(out: Out, items: Sequence[DeleteAclsRequest.DeleteAclsFilter], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_b(x.resource_type_filter))
            w(p.compact_nullable_string(x.resource_name_filter))
            w(_pack_b(x.pattern_type_filter))
            w(p.compact_nullable_string(x.principal_filter))
            w(p.compact_nullable_string(x.host_filter))
            w(_pack_bbx(x.operation, x.permission_type))
    else:
        for x in items:
            w(_pack_b(x.resource_type_filter))
            w(p.nullable_string(x.resource_name_filter))
            w(_pack_b(x.pattern_type_filter))
            w(p.nullable_string(x.principal_filter))
            w(p.nullable_string(x.host_filter))
            w(_pack_bb(x.operation, x.permission_type))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteAclsRequest], int]:
    items: list[DeleteAclsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteAclsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Filters")
            x.filters, pos = _read_request_delete_acls_filter(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteAclsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Filters")
            x.filters, pos = _read_request_delete_acls_filter(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DeleteAclsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            filters = x.filters
            n = len(filters) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if filters:
                _write_request_delete_acls_filter(out, filters, version)
            w(b"\0")
    else:
        for x in items:
            filters = x.filters
            w(_pack_i(len(filters)))
            if filters:
                _write_request_delete_acls_filter(out, filters, version)


DeleteAclsRequest.READ = _read_request
DeleteAclsRequest.WRITE = _write_request


class DeleteAclsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "filter_results",
    )
    API_KEY = 31
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class DeleteAclsFilterResult(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "matching_acls",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = [] if matching_acls is EMPTY else matching_acls

    class DeleteAclsMatchingAcl(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "resource_type",
            "resource_name",
            "pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.pattern_type: int = pattern_type
            self.principal: str = principal
            self.host: str = host
            self.operation: int = operation
            self.permission_type: int = permission_type

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = [] if filter_results is EMPTY else filter_results


def _read_response_delete_acls_matching_acl(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteAclsResponse.DeleteAclsMatchingAcl], int]:
    items: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteAclsResponse.DeleteAclsMatchingAcl)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            (x.pattern_type,) = _unpack_b(buf, pos)
            pos += 1
            x.principal, pos = p.read_compact_string(buf, pos)
            x.host, pos = p.read_compact_string(buf, pos)
            (x.operation, x.permission_type, tags) = _unpack_bbB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteAclsResponse.DeleteAclsMatchingAcl)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            (x.pattern_type,) = _unpack_b(buf, pos)
            pos += 1
            x.principal, pos = p.read_string(buf, pos)
            x.host, pos = p.read_string(buf, pos)
            (x.operation, x.permission_type) = _unpack_bb(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_delete_acls_matching_acl(out: Out, items: Sequence[DeleteAclsResponse.DeleteAclsMatchingAcl], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            w(_pack_b(x.pattern_type))
            w(p.compact_string(x.principal))
            w(p.compact_string(x.host))
            w(_pack_bbx(x.operation, x.permission_type))
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            w(_pack_b(x.pattern_type))
            w(p.string(x.principal))
            w(p.string(x.host))
            w(_pack_bb(x.operation, x.permission_type))


def _read_response_delete_acls_filter_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteAclsResponse.DeleteAclsFilterResult], int]:
    items: list[DeleteAclsResponse.DeleteAclsFilterResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteAclsResponse.DeleteAclsFilterResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("MatchingAcls")
            x.matching_acls, pos = _read_response_delete_acls_matching_acl(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteAclsResponse.DeleteAclsFilterResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("MatchingAcls")
            x.matching_acls, pos = _read_response_delete_acls_matching_acl(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_delete_acls_filter_result(out: Out, items: Sequence[DeleteAclsResponse.DeleteAclsFilterResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            matching_acls = x.matching_acls
            n = len(matching_acls) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if matching_acls:
                _write_response_delete_acls_matching_acl(out, matching_acls, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            matching_acls = x.matching_acls
            w(_pack_i(len(matching_acls)))
            if matching_acls:
                _write_response_delete_acls_matching_acl(out, matching_acls, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DeleteAclsResponse], int]:
    items: list[DeleteAclsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(DeleteAclsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("FilterResults")
            x.filter_results, pos = _read_response_delete_acls_filter_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DeleteAclsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("FilterResults")
            x.filter_results, pos = _read_response_delete_acls_filter_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DeleteAclsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            filter_results = x.filter_results
            n = len(filter_results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if filter_results:
                _write_response_delete_acls_filter_result(out, filter_results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            filter_results = x.filter_results
            w(_pack_i(len(filter_results)))
            if filter_results:
                _write_response_delete_acls_filter_result(out, filter_results, version)


DeleteAclsResponse.READ = _read_response
DeleteAclsResponse.WRITE = _write_response
