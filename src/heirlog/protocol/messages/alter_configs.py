"""Written by `python -m heirlog.protocol.generator` from specs/messages/alter_configs.spec. Do not edit."""

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
_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack


class AlterConfigsRequest(Message):
    __slots__ = (
        "resources",
        "validate_only",
    )
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    class AlterConfigsResource(Struct):
        __slots__ = (
            "resource_type",
            "resource_name",
            "configs",
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[AlterConfigsRequest.AlterableConfig] = EMPTY,
        ) -> None:
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.configs: list[AlterConfigsRequest.AlterableConfig] = [] if configs is EMPTY else configs

    class AlterableConfig(Struct):
        __slots__ = (
            "name",
            "value",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = None,
        ) -> None:
            self.name: str = name
            self.value: str | None = value

    def __init__(
        self,
        *,
        resources: list[AlterConfigsRequest.AlterConfigsResource] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.resources: list[AlterConfigsRequest.AlterConfigsResource] = [] if resources is EMPTY else resources
        self.validate_only: bool = validate_only


def _read_request_alterable_config(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterConfigsRequest.AlterableConfig], int]:
    items: list[AlterConfigsRequest.AlterableConfig] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(AlterConfigsRequest.AlterableConfig)
            x.name, pos = p.read_compact_string(buf, pos)
            x.value, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterConfigsRequest.AlterableConfig)
            x.name, pos = p.read_string(buf, pos)
            x.value, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    return items, pos


def _write_request_alterable_config(out: Out, items: Sequence[AlterConfigsRequest.AlterableConfig], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(p.compact_string(x.name))
            w(p.compact_nullable_string(x.value))
            w(b"\0")
    else:
        for x in items:
            w(p.string(x.name))
            w(p.nullable_string(x.value))


def _read_request_alter_configs_resource(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterConfigsRequest.AlterConfigsResource], int]:
    items: list[AlterConfigsRequest.AlterConfigsResource] = []
    if count > 1:
        p.spend(count)
    if version >= 2:
        for _ in range(count):
            x = new(AlterConfigsRequest.AlterConfigsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_request_alterable_config(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterConfigsRequest.AlterConfigsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_request_alterable_config(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_request_alter_configs_resource(out: Out, items: Sequence[AlterConfigsRequest.AlterConfigsResource], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            configs = x.configs
            n = len(configs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if configs:
                _write_request_alterable_config(out, configs, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            configs = x.configs
            w(_pack_i(len(configs)))
            if configs:
                _write_request_alterable_config(out, configs, version)


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterConfigsRequest], int]:
    items: list[AlterConfigsRequest] = []
    if version >= 2:
        for _ in range(count):
            x = new(AlterConfigsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_request_alter_configs_resource(buf, pos, n, version)
            (x.validate_only, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterConfigsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_request_alter_configs_resource(buf, pos, n, version)
            (x.validate_only,) = _unpack_o(buf, pos)
            pos += 1
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[AlterConfigsRequest], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            resources = x.resources
            n = len(resources) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if resources:
                _write_request_alter_configs_resource(out, resources, version)
            w(_pack_ox(x.validate_only))
    else:
        for x in items:
            resources = x.resources
            w(_pack_i(len(resources)))
            if resources:
                _write_request_alter_configs_resource(out, resources, version)
            w(_pack_o(x.validate_only))


AlterConfigsRequest.READ = _read_request
AlterConfigsRequest.WRITE = _write_request


class AlterConfigsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    API_KEY = 33
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 2

    class AlterConfigsResourceResponse(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "resource_type",
            "resource_name",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            resource_type: int = 0,
            resource_name: str = "",
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = [] if responses is EMPTY else responses


def _read_response_alter_configs_resource_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterConfigsResponse.AlterConfigsResourceResponse], int]:
    items: list[AlterConfigsResponse.AlterConfigsResourceResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(AlterConfigsResponse.AlterConfigsResourceResponse)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterConfigsResponse.AlterConfigsResourceResponse)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            items.append(x)
    return items, pos


def _write_response_alter_configs_resource_response(out: Out, items: Sequence[AlterConfigsResponse.AlterConfigsResourceResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            w(b"\0")
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[AlterConfigsResponse], int]:
    items: list[AlterConfigsResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(AlterConfigsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_alter_configs_resource_response(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(AlterConfigsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Responses")
            x.responses, pos = _read_response_alter_configs_resource_response(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[AlterConfigsResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            responses = x.responses
            n = len(responses) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if responses:
                _write_response_alter_configs_resource_response(out, responses, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            responses = x.responses
            w(_pack_i(len(responses)))
            if responses:
                _write_response_alter_configs_resource_response(out, responses, version)


AlterConfigsResponse.READ = _read_response
AlterConfigsResponse.WRITE = _write_response
