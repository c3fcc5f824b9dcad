"""Written by `python -m heirlog.protocol.generator` from specs/messages/create_acls.spec. Do not edit."""

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


class CreateAclsRequest(Message):
    __slots__ = (
        "creations",
    )
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class AclCreation(Struct):
        __slots__ = (
            "resource_type",
            "resource_name",
            "resource_pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            resource_pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None:
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.resource_pattern_type: int = resource_pattern_type
            self.principal: str = principal
            self.host: str = host
            self.operation: int = operation
            self.permission_type: int = permission_type

    def __init__(
        self,
        *,
        creations: list[CreateAclsRequest.AclCreation] = EMPTY,
    ) -> None:
        self.creations: list[CreateAclsRequest.AclCreation] = [] if creations is EMPTY else creations


def _read_request_acl_creation(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateAclsRequest.AclCreation], int]:
    items: list[CreateAclsRequest.AclCreation] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(CreateAclsRequest.AclCreation)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            (x.resource_pattern_type,) = _unpack_b(buf, pos)
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
            x = new(CreateAclsRequest.AclCreation)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            (x.resource_pattern_type,) = _unpack_b(buf, pos)
            pos += 1
            x.principal, pos = p.read_string(buf, pos)
            x.host, pos = p.read_string(buf, pos)
            (x.operation, x.permission_type) = _unpack_bb(buf, pos)
            pos += 2
            items.append(x)
    return items, pos


def _write_request_acl_creation(out: Out, items: Sequence[CreateAclsRequest.AclCreation], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            w(_pack_b(x.resource_pattern_type))
            w(p.compact_string(x.principal))
            w(p.compact_string(x.host))
            w(_pack_bbx(x.operation, x.permission_type))
    else:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            w(_pack_b(x.resource_pattern_type))
            w(p.string(x.principal))
            w(p.string(x.host))
            w(_pack_bb(x.operation, x.permission_type))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateAclsRequest], int]:
    items: list[CreateAclsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreateAclsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Creations")
            x.creations, pos = _read_request_acl_creation(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateAclsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Creations")
            x.creations, pos = _read_request_acl_creation(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[CreateAclsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            creations = x.creations
            n = len(creations) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if creations:
                _write_request_acl_creation(out, creations, version)
            w(b"\0")
    else:
        for x in items:
            creations = x.creations
            w(_pack_i(len(creations)))
            if creations:
                _write_request_acl_creation(out, creations, version)


CreateAclsRequest.READ = _read_request
CreateAclsRequest.WRITE = _write_request


class CreateAclsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 30
    MIN_VERSION = 1
    MAX_VERSION = 3
    FLEXIBLE_VERSION = 2

    class AclCreationResult(Struct):
        __slots__ = (
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreateAclsResponse.AclCreationResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreateAclsResponse.AclCreationResult] = [] if results is EMPTY else results


def _read_response_acl_creation_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateAclsResponse.AclCreationResult], int]:
    items: list[CreateAclsResponse.AclCreationResult] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreateAclsResponse.AclCreationResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateAclsResponse.AclCreationResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_acl_creation_result(out: Out, items: Sequence[CreateAclsResponse.AclCreationResult], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[CreateAclsResponse], int]:
    items: list[CreateAclsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(CreateAclsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_acl_creation_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(CreateAclsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_acl_creation_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[CreateAclsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_acl_creation_result(out, results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            w(_pack_i(len(results)))
            if results:
                _write_response_acl_creation_result(out, results, version)


CreateAclsResponse.READ = _read_response
CreateAclsResponse.WRITE = _write_response
