"""Written by `python -m heirlog.protocol.generator` from specs/messages/describe_configs.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_oo = _Shape(">??").unpack_from
_pack_oo = _Shape(">??").pack
_unpack_ooB = _Shape(">??B").unpack_from
_pack_oox = _Shape(">??x").pack
_unpack_obo = _Shape(">?b?").unpack_from
_pack_obo = _Shape(">?b?").pack
_unpack_b = _Shape(">b").unpack_from
_pack_b = _Shape(">b").pack
_unpack_bB = _Shape(">bB").unpack_from
_pack_bx = _Shape(">bx").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack


class DescribeConfigsRequest(Message):
    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    class DescribeConfigsResource(Struct):
        __slots__ = (
            "resource_type",
            "resource_name",
            "configuration_keys",
        )

        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configuration_keys: list[str] | None = EMPTY,
        ) -> None:
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.configuration_keys: list[str] | None = [] if configuration_keys is EMPTY else configuration_keys

    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = EMPTY,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources: list[DescribeConfigsRequest.DescribeConfigsResource] = [] if resources is EMPTY else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation


def _read_request_describe_configs_resource(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsRequest.DescribeConfigsResource], int]:
    items: list[DescribeConfigsRequest.DescribeConfigsResource] = []
    if count > 1:
        p.spend(count)
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsRequest.DescribeConfigsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                x.configuration_keys = None
            else:
                x.configuration_keys, pos = p.read_compact_strings(buf, pos, n)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsRequest.DescribeConfigsResource)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                x.configuration_keys = None
            else:
                x.configuration_keys, pos = p.read_strings(buf, pos, n)
            items.append(x)
    return items, pos


def _write_request_describe_configs_resource(out: Out, items: Sequence[DescribeConfigsRequest.DescribeConfigsResource], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            configuration_keys = x.configuration_keys
            if configuration_keys is None:
                w(b"\0")
            else:
                n = len(configuration_keys) + 1
                w(BYTE[n] if n < 128 else p.uvarint(n))
                if configuration_keys:
                    w(p.compact_strings(configuration_keys))
            w(b"\0")
    else:
        for x in items:
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            configuration_keys = x.configuration_keys
            if configuration_keys is None:
                w(b"\xff\xff\xff\xff")
            else:
                w(_pack_i(len(configuration_keys)))
                if configuration_keys:
                    w(p.strings(configuration_keys))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsRequest], int]:
    items: list[DescribeConfigsRequest] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsRequest)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_request_describe_configs_resource(buf, pos, n, version)
            (x.include_synonyms, x.include_documentation, tags) = _unpack_ooB(buf, pos)
            pos += 3
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(DescribeConfigsRequest)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_request_describe_configs_resource(buf, pos, n, version)
            (x.include_synonyms, x.include_documentation) = _unpack_oo(buf, pos)
            pos += 2
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsRequest)
            x.include_documentation = False
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Resources")
            x.resources, pos = _read_request_describe_configs_resource(buf, pos, n, version)
            (x.include_synonyms,) = _unpack_o(buf, pos)
            pos += 1
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[DescribeConfigsRequest], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            resources = x.resources
            n = len(resources) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if resources:
                _write_request_describe_configs_resource(out, resources, version)
            w(_pack_oox(x.include_synonyms, x.include_documentation))
    elif version >= 3:
        for x in items:
            resources = x.resources
            w(_pack_i(len(resources)))
            if resources:
                _write_request_describe_configs_resource(out, resources, version)
            w(_pack_oo(x.include_synonyms, x.include_documentation))
    else:
        for x in items:
            resources = x.resources
            w(_pack_i(len(resources)))
            if resources:
                _write_request_describe_configs_resource(out, resources, version)
            w(_pack_o(x.include_synonyms))


DescribeConfigsRequest.READ = _read_request
DescribeConfigsRequest.WRITE = _write_request


class DescribeConfigsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 32
    MIN_VERSION = 1
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 4

    class DescribeConfigsResult(Struct):
        __slots__ = (
            "error_code",
            "error_message",
            "resource_type",
            "resource_name",
            "configs",
        )

        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = EMPTY,
        ) -> None:
            self.error_code: int = error_code
            self.error_message: str | None = error_message
            self.resource_type: int = resource_type
            self.resource_name: str = resource_name
            self.configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = [] if configs is EMPTY else configs

    class DescribeConfigsResourceResult(Struct):
        __slots__ = (
            "name",
            "value",
            "read_only",
            "config_source",
            "is_sensitive",
            "synonyms",
            "config_type",
            "documentation",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = None,
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = EMPTY,
            config_type: int = 0,
            documentation: str | None = None,
        ) -> None:
            self.name: str = name
            self.value: str | None = value
            self.read_only: bool = read_only
            self.config_source: int = config_source
            self.is_sensitive: bool = is_sensitive
            self.synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = [] if synonyms is EMPTY else synonyms
            self.config_type: int = config_type
            self.documentation: str | None = documentation

    class DescribeConfigsSynonym(Struct):
        __slots__ = (
            "name",
            "value",
            "source",
        )

        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = None,
            source: int = 0,
        ) -> None:
            self.name: str = name
            self.value: str | None = value
            self.source: int = source

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResponse.DescribeConfigsResult] = [] if results is EMPTY else results


def _read_response_describe_configs_synonym(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsResponse.DescribeConfigsSynonym], int]:
    items: list[DescribeConfigsResponse.DescribeConfigsSynonym] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsSynonym)
            x.name, pos = p.read_compact_string(buf, pos)
            x.value, pos = p.read_compact_nullable_string(buf, pos)
            (x.source, tags) = _unpack_bB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsSynonym)
            x.name, pos = p.read_string(buf, pos)
            x.value, pos = p.read_nullable_string(buf, pos)
            (x.source,) = _unpack_b(buf, pos)
            pos += 1
            items.append(x)
    return items, pos


def _write_response_describe_configs_synonym(out: Out, items: Sequence[DescribeConfigsResponse.DescribeConfigsSynonym], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.name))
            w(p.compact_nullable_string(x.value))
            w(_pack_bx(x.source))
    else:
        for x in items:
            w(p.string(x.name))
            w(p.nullable_string(x.value))
            w(_pack_b(x.source))


def _read_response_describe_configs_resource_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsResponse.DescribeConfigsResourceResult], int]:
    items: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsResourceResult)
            x.name, pos = p.read_compact_string(buf, pos)
            x.value, pos = p.read_compact_nullable_string(buf, pos)
            (x.read_only, x.config_source, x.is_sensitive) = _unpack_obo(buf, pos)
            pos += 3
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Synonyms")
            x.synonyms, pos = _read_response_describe_configs_synonym(buf, pos, n, version)
            (x.config_type,) = _unpack_b(buf, pos)
            pos += 1
            x.documentation, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    elif version >= 3:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsResourceResult)
            x.name, pos = p.read_string(buf, pos)
            x.value, pos = p.read_nullable_string(buf, pos)
            (x.read_only, x.config_source, x.is_sensitive) = _unpack_obo(buf, pos)
            pos += 3
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Synonyms")
            x.synonyms, pos = _read_response_describe_configs_synonym(buf, pos, n, version)
            (x.config_type,) = _unpack_b(buf, pos)
            pos += 1
            x.documentation, pos = p.read_nullable_string(buf, pos)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsResourceResult)
            x.config_type = 0
            x.documentation = None
            x.name, pos = p.read_string(buf, pos)
            x.value, pos = p.read_nullable_string(buf, pos)
            (x.read_only, x.config_source, x.is_sensitive) = _unpack_obo(buf, pos)
            pos += 3
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Synonyms")
            x.synonyms, pos = _read_response_describe_configs_synonym(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_describe_configs_resource_result(out: Out, items: Sequence[DescribeConfigsResponse.DescribeConfigsResourceResult], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(p.compact_string(x.name))
            w(p.compact_nullable_string(x.value))
            w(_pack_obo(x.read_only, x.config_source, x.is_sensitive))
            synonyms = x.synonyms
            n = len(synonyms) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if synonyms:
                _write_response_describe_configs_synonym(out, synonyms, version)
            w(_pack_b(x.config_type))
            w(p.compact_nullable_string(x.documentation))
            w(b"\0")
    elif version >= 3:
        for x in items:
            w(p.string(x.name))
            w(p.nullable_string(x.value))
            w(_pack_obo(x.read_only, x.config_source, x.is_sensitive))
            synonyms = x.synonyms
            w(_pack_i(len(synonyms)))
            if synonyms:
                _write_response_describe_configs_synonym(out, synonyms, version)
            w(_pack_b(x.config_type))
            w(p.nullable_string(x.documentation))
    else:
        for x in items:
            w(p.string(x.name))
            w(p.nullable_string(x.value))
            w(_pack_obo(x.read_only, x.config_source, x.is_sensitive))
            synonyms = x.synonyms
            w(_pack_i(len(synonyms)))
            if synonyms:
                _write_response_describe_configs_synonym(out, synonyms, version)


def _read_response_describe_configs_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsResponse.DescribeConfigsResult], int]:
    items: list[DescribeConfigsResponse.DescribeConfigsResult] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_compact_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_response_describe_configs_resource_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsResponse.DescribeConfigsResult)
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            x.error_message, pos = p.read_nullable_string(buf, pos)
            (x.resource_type,) = _unpack_b(buf, pos)
            pos += 1
            x.resource_name, pos = p.read_string(buf, pos)
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Configs")
            x.configs, pos = _read_response_describe_configs_resource_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response_describe_configs_result(out: Out, items: Sequence[DescribeConfigsResponse.DescribeConfigsResult], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.compact_string(x.resource_name))
            configs = x.configs
            n = len(configs) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if configs:
                _write_response_describe_configs_resource_result(out, configs, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_h(x.error_code))
            w(p.nullable_string(x.error_message))
            w(_pack_b(x.resource_type))
            w(p.string(x.resource_name))
            configs = x.configs
            w(_pack_i(len(configs)))
            if configs:
                _write_response_describe_configs_resource_result(out, configs, version)


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[DescribeConfigsResponse], int]:
    items: list[DescribeConfigsResponse] = []
    if version >= 4:
        for _ in range(count):
            x = new(DescribeConfigsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_describe_configs_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(DescribeConfigsResponse)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_describe_configs_result(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[DescribeConfigsResponse], version: int) -> None:
    w = out.small.append
    if version >= 4:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_describe_configs_result(out, results, version)
            w(b"\0")
    else:
        for x in items:
            w(_pack_i(x.throttle_time_ms))
            results = x.results
            w(_pack_i(len(results)))
            if results:
                _write_response_describe_configs_result(out, results, version)


DescribeConfigsResponse.READ = _read_response
DescribeConfigsResponse.WRITE = _write_response
