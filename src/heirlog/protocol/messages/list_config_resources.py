"""Written by `python -m heirlog.protocol.generator` from specs/messages/list_config_resources.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_bB = _Shape(">bB").unpack_from
_pack_bx = _Shape(">bx").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class ListConfigResourcesRequest(Message):
    __slots__ = (
        "resource_types",
    )
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    def __init__(
        self,
        *,
        resource_types: list[int] = EMPTY,
    ) -> None:
        self.resource_types: list[int] = [] if resource_types is EMPTY else resource_types


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListConfigResourcesRequest], int]:
    items: list[ListConfigResourcesRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(ListConfigResourcesRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ResourceTypes")
            x.resource_types, pos = p.read_int8s(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListConfigResourcesRequest)
            x.resource_types = []
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ListConfigResourcesRequest], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            resource_types = x.resource_types
            n = len(resource_types) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if resource_types:
                w(p.int8s(resource_types))
            w(b"\0")
    else:
        for _ in items:
            w(b"\0")


ListConfigResourcesRequest.READ = _read_request
ListConfigResourcesRequest.WRITE = _write_request


class ListConfigResourcesResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )
    API_KEY = 74
    MIN_VERSION = 0
    MAX_VERSION = 1
    FLEXIBLE_VERSION = 0

    class ConfigResource(Struct):
        __slots__ = (
            "resource_name",
            "resource_type",
        )

        def __init__(
            self,
            *,
            resource_name: str = "",
            resource_type: int = 16,
        ) -> None:
            self.resource_name: str = resource_name
            self.resource_type: int = resource_type

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ListConfigResourcesResponse.ConfigResource] = [] if config_resources is EMPTY else config_resources


def _read_response_config_resource(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListConfigResourcesResponse.ConfigResource], int]:
    items: list[ListConfigResourcesResponse.ConfigResource] = []
    if version >= 1:
        for _ in range(count):
            x = new(ListConfigResourcesResponse.ConfigResource)
            x.resource_name, pos = p.read_compact_string(buf, pos)
            (x.resource_type, tags) = _unpack_bB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ListConfigResourcesResponse.ConfigResource)
            x.resource_type = 16
            x.resource_name, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response_config_resource(out: Out, items: Sequence[ListConfigResourcesResponse.ConfigResource], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(p.compact_string(x.resource_name))
            w(_pack_bx(x.resource_type))
    else:
        for x in items:
            w(p.compact_string(x.resource_name))
            w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ListConfigResourcesResponse], int]:
    items: list[ListConfigResourcesResponse] = []
    for _ in range(count):
        x = new(ListConfigResourcesResponse)
        (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
        pos += 6
        n = buf[pos] - 1
        pos += 1
        if n >= 127:
            n, pos = p.read_compact_length(buf, pos - 1)
        if n < 0:
            raise p.null("ConfigResources")
        x.config_resources, pos = _read_response_config_resource(buf, pos, n, version)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ListConfigResourcesResponse], version: int) -> None:
    w = out.small.append
    for x in items:
        w(_pack_ih(x.throttle_time_ms, x.error_code))
        config_resources = x.config_resources
        n = len(config_resources) + 1
        w(BYTE[n] if n < 128 else p.uvarint(n))
        if config_resources:
            _write_response_config_resource(out, config_resources, version)
        w(b"\0")


ListConfigResourcesResponse.READ = _read_response
ListConfigResourcesResponse.WRITE = _write_response
