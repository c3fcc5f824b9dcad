"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_acls.spec. Do not edit."""

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
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class DescribeAclsRequest(Message):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

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


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeAclsRequest], int]:
    items: list[DescribeAclsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeAclsRequest)
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
            x = new(DescribeAclsRequest)
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


def _write_request(out: Out, items: Sequence[DescribeAclsRequest], version: int) -> None:
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


DescribeAclsRequest.READ = _read_request
DescribeAclsRequest.WRITE = _write_request


class DescribeAclsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "resources",
    )
    API_KEY = 29
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class DescribeAclsResource(Struct):
        __slots__ = (
            "resource_type",
            "resource_name",
            "pattern_type",
            "acls",
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            acls: list[DescribeAclsResponse.AclDescription] = EMPTY,
        ) -> None:
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.pattern_type: int = pattern_type
            self.acls: list[DescribeAclsResponse.AclDescription] = [] if acls is EMPTY else acls

    class AclDescription(Struct):
        __slots__ = (
            "principal",
            "host",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.principal: str = principal
            self.host: str = host
            self.operation: int = operation
            self.permission_type: int = permission_type

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        resources: list[DescribeAclsResponse.DescribeAclsResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resources: list[DescribeAclsResponse.DescribeAclsResource] = [] if resources is EMPTY else resources


def _read_response_acl_description(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeAclsResponse.AclDescription], int]:
    items: list[DescribeAclsResponse.AclDescription] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeAclsResponse.AclDescription)
            x.principal, pos = p.read_compact_string(buf, pos)
            x.host, pos = p.read_compact_string(buf, pos)
            (x.operation, x.permission_type, tags) = _unpack_bbB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeAclsResponse.AclDescription)
            x.principal, pos = p.read_string(buf, pos)
            x.host, pos = p.read_string(buf, pos)
            (x.operation, x.permission_type) = _unpack_bb(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_response_acl_description(out: Out, items: Sequence[DescribeAclsResponse.AclDescription], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.principal))
            w(p.compact_string(x.host))
            w(_pack_bbx(x.operation, x.permission_type))
    else:
        for x in items:
            w(p.string(x.principal))
            w(p.string(x.host))
            w(_pack_bb(x.operation, x.permission_type))


def _read_response_describe_acls_resource(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeAclsResponse.DescribeAclsResource], int]:
    items: list[DescribeAclsResponse.DescribeAclsResource] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeAclsResponse.DescribeAclsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            (x.pattern_type,) = _unpack_b(buf, pos)
            pos += 1
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Acls")
            x.acls, pos = _read_response_acl_description(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeAclsResponse.DescribeAclsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            (x.pattern_type,) = _unpack_b(buf, pos)
            pos += 1
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Acls")
            x.acls, pos = _read_response_acl_description(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_describe_acls_resource(out: Out, items: Sequence[DescribeAclsResponse.DescribeAclsResource], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            w(_pack_b(x.pattern_type))
            acls = x.acls
            n = len(acls) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if acls:
                _write_response_acl_description(out, acls, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            w(_pack_b(x.pattern_type))
            acls = x.acls
            w(_pack_i(len(acls)))
            if acls:
                _write_response_acl_description(out, acls, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeAclsResponse], int]:
    items: list[DescribeAclsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(DescribeAclsResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_response_describe_acls_resource(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeAclsResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_nullable_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_response_describe_acls_resource(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeAclsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            resources = x.resources
            n = len(resources) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if resources:
                _write_response_describe_acls_resource(out, resources, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.nullable_string(x.error_message))
            resources = x.resources
            w(_pack_i(len(resources)))
            if resources:
                _write_response_describe_acls_resource(out, resources, version)


DescribeAclsResponse.READ = _read_response
DescribeAclsResponse.WRITE = _write_response
