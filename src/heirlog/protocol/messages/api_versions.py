"""Written by `python -m heirlog.protocol.generator` from specs/messages/api_versions.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_o = _Shape(">?").unpack_from
_pack_o = _Shape(">?").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hhB = _Shape(">hhB").unpack_from
_unpack_hhh = _Shape(">hhh").unpack_from
_pack_hhh = _Shape(">hhh").pack
_unpack_hhhB = _Shape(">hhhB").unpack_from
_pack_hhhx = _Shape(">hhhx").pack
_pack_hhx = _Shape(">hhx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_iB = _Shape(">iB").unpack_from
_unpack_q = _Shape(">q").unpack_from
_pack_q = _Shape(">q").pack


class ApiVersionsRequest(Message):
    __slots__ = (
        "client_software_name",
        "client_software_version",
    )
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 3

    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ApiVersionsRequest], int]:
    items: list[ApiVersionsRequest] = []
    if version >= 3:
        for _ in range(count):
            x = new(ApiVersionsRequest)
            x.client_software_name, pos = p.read_compact_string(buf, pos)
            x.client_software_version, pos = p.read_compact_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ApiVersionsRequest)
            x.client_software_name = ""
            x.client_software_version = ""
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[ApiVersionsRequest], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(p.compact_string(x.client_software_name))
            w(p.compact_string(x.client_software_version))
            w(b"\0")
    else:
        pass


ApiVersionsRequest.READ = _read_request
ApiVersionsRequest.WRITE = _write_request


class ApiVersionsResponse(Message):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    API_KEY = 18
    MIN_VERSION = 0
    MAX_VERSION = 4
    FLEXIBLE_VERSION = 3

    class ApiVersion(Struct):
        __slots__ = (
            "api_key",
            "min_version",
            "max_version",
        )

        def __init__(
            self,
            *,
            api_key: int = 0,
            min_version: int = 0,
            max_version: int = 0,
        ) -> None:
            self.api_key: int = api_key
            self.min_version: int = min_version
            self.max_version: int = max_version

    class SupportedFeatureKey(Struct):
        __slots__ = (
            "name",
            "min_version",
            "max_version",
        )

        def __init__(
            self,
            *,
            name: str = "",
            min_version: int = 0,
            max_version: int = 0,
        ) -> None:
            self.name: str = name
            self.min_version: int = min_version
            self.max_version: int = max_version

    class FinalizedFeatureKey(Struct):
        __slots__ = (
            "name",
            "max_version_level",
            "min_version_level",
        )

        def __init__(
            self,
            *,
            name: str = "",
            max_version_level: int = 0,
            min_version_level: int = 0,
        ) -> None:
            self.name: str = name
            self.max_version_level: int = max_version_level
            self.min_version_level: int = min_version_level

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersionsResponse.ApiVersion] = EMPTY,
        throttle_time_ms: int = 0,
        supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = EMPTY,
        finalized_features_epoch: int = -1,
        finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = EMPTY,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersionsResponse.ApiVersion] = [] if api_keys is EMPTY else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = [] if supported_features is EMPTY else supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = [] if finalized_features is EMPTY else finalized_features
        self.zk_migration_ready: bool = zk_migration_ready


def _read_response_finalized_feature_key(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ApiVersionsResponse.FinalizedFeatureKey], int]:
    items: list[ApiVersionsResponse.FinalizedFeatureKey] = []
    for _ in range(count):
        x = new(ApiVersionsResponse.FinalizedFeatureKey)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.max_version_level, x.min_version_level, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_finalized_feature_key(out: Out, items: Sequence[ApiVersionsResponse.FinalizedFeatureKey], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.max_version_level, x.min_version_level))


def _read_response_supported_feature_key(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ApiVersionsResponse.SupportedFeatureKey], int]:
    items: list[ApiVersionsResponse.SupportedFeatureKey] = []
    for _ in range(count):
        x = new(ApiVersionsResponse.SupportedFeatureKey)
        x.name, pos = p.read_compact_string(buf, pos)
        (x.min_version, x.max_version, tags) = _unpack_hhB(buf, pos)
        pos += 5
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_supported_feature_key(out: Out, items: Sequence[ApiVersionsResponse.SupportedFeatureKey], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.name))
        w(_pack_hhx(x.min_version, x.max_version))


def _read_response_api_version(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ApiVersionsResponse.ApiVersion], int]:
    items: list[ApiVersionsResponse.ApiVersion] = []
    if version >= 3:
        for _ in range(count):
            x = new(ApiVersionsResponse.ApiVersion)
            (x.api_key, x.min_version, x.max_version, tags) = _unpack_hhhB(buf, pos)
            pos += 7
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(ApiVersionsResponse.ApiVersion)
            (x.api_key, x.min_version, x.max_version) = _unpack_hhh(buf, pos)
            pos += 6
            items.append(x)
    return items, pos


def _write_response_api_version(out: Out, items: Sequence[ApiVersionsResponse.ApiVersion], version: int) -> None:
    w = out.small.append
    if version >= 3:
        for x in items:
            w(_pack_hhhx(x.api_key, x.min_version, x.max_version))
    else:
        for x in items:
            w(_pack_hhh(x.api_key, x.min_version, x.max_version))


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[ApiVersionsResponse], int]:
    items: list[ApiVersionsResponse] = []
    if version >= 3:
        for _ in range(count):
            x = new(ApiVersionsResponse)
            x.supported_features = []
            x.finalized_features_epoch = -1
            x.finalized_features = []
            x.zk_migration_ready = False
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("ApiKeys")
            x.api_keys, pos = _read_response_api_version(buf, pos, n, version)
            (x.throttle_time_ms, tags) = _unpack_iB(buf, pos)
            pos += 5
            if tags:
                if tags >= 128:
                    tags, pos = p.more_uvarint(buf, pos, tags)
                for _ in range(tags):
                    tag, pos = p.read_uvarint(buf, pos)
                    pos, end = p.read_tag_end(buf, pos)
                    if tag == 0:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("SupportedFeatures")
                        x.supported_features, pos = _read_response_supported_feature_key(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("SupportedFeatures")
                    elif tag == 1:
                        (x.finalized_features_epoch,) = _unpack_q(buf, pos)
                        pos += 8
                        if pos != end:
                            raise p.bad_tag("FinalizedFeaturesEpoch")
                    elif tag == 2:
                        n = buf[pos] - 1
                        pos += 1
                        if n >= 127:
                            n, pos = p.read_compact_length(buf, pos - 1)
                        if n < 0:
                            raise p.null("FinalizedFeatures")
                        x.finalized_features, pos = _read_response_finalized_feature_key(buf, pos, n, version)
                        if pos != end:
                            raise p.bad_tag("FinalizedFeatures")
                    elif tag == 3:
                        (x.zk_migration_ready,) = _unpack_o(buf, pos)
                        pos += 1
                        if pos != end:
                            raise p.bad_tag("ZkMigrationReady")
                    else:
                        pos = end
            items.append(x)
    elif version >= 1:
        for _ in range(count):
            x = new(ApiVersionsResponse)
            x.supported_features = []
            x.finalized_features_epoch = -1
            x.finalized_features = []
            x.zk_migration_ready = False
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ApiKeys")
            x.api_keys, pos = _read_response_api_version(buf, pos, n, version)
            (x.throttle_time_ms,) = _unpack_i(buf, pos)
            pos += 4
            items.append(x)
    else:
        for _ in range(count):
            x = new(ApiVersionsResponse)
            x.throttle_time_ms = 0
            x.supported_features = []
            x.finalized_features_epoch = -1
            x.finalized_features = []
            x.zk_migration_ready = False
            (x.error_code,) = _unpack_h(buf, pos)
            pos += 2
            n, pos = p.read_length(buf, pos)
            if n < 0:
                raise p.null("ApiKeys")
            x.api_keys, pos = _read_response_api_version(buf, pos, n, version)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[ApiVersionsResponse], version: int) -> None:
    w = out.small.append
    tagged: list[tuple[int, Out]]
    if version >= 3:
        for x in items:
            w(_pack_h(x.error_code))
            api_keys = x.api_keys
            n = len(api_keys) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if api_keys:
                _write_response_api_version(out, api_keys, version)
            w(_pack_i(x.throttle_time_ms))
            if x.supported_features or x.finalized_features_epoch != -1 or x.finalized_features or x.zk_migration_ready:
                tagged = []
                if x.supported_features:
                    inner = Out()
                    supported_features = x.supported_features
                    n = len(supported_features) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if supported_features:
                        _write_response_supported_feature_key(inner, supported_features, version)
                    tagged.append((0, inner))
                if x.finalized_features_epoch != -1:
                    inner = Out()
                    inner.small.append(_pack_q(x.finalized_features_epoch))
                    tagged.append((1, inner))
                if x.finalized_features:
                    inner = Out()
                    finalized_features = x.finalized_features
                    n = len(finalized_features) + 1
                    inner.small.append(BYTE[n] if n < 128 else p.uvarint(n))
                    if finalized_features:
                        _write_response_finalized_feature_key(inner, finalized_features, version)
                    tagged.append((2, inner))
                if x.zk_migration_ready:
                    inner = Out()
                    inner.small.append(_pack_o(x.zk_migration_ready))
                    tagged.append((3, inner))
                p.write_tags(out, tagged)
            else:
                w(b"\0")
    elif version >= 1:
        for x in items:
            w(_pack_h(x.error_code))
            api_keys = x.api_keys
            w(_pack_i(len(api_keys)))
            if api_keys:
                _write_response_api_version(out, api_keys, version)
            w(_pack_i(x.throttle_time_ms))
    else:
        for x in items:
            w(_pack_h(x.error_code))
            api_keys = x.api_keys
            w(_pack_i(len(api_keys)))
            if api_keys:
                _write_response_api_version(out, api_keys, version)


ApiVersionsResponse.READ = _read_response
ApiVersionsResponse.WRITE = _write_response
