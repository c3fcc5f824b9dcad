"""Written by `python -m heirlog.protocol.generator` from specs/messages/update_features.spec. Do not edit."""

# fmt: off
# ruff: noqa: E501, RUF023

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as _Shape

from heirlog.protocol import primitives as p
from heirlog.protocol.primitives import BYTE, EMPTY, Message, Out, Struct, new

_unpack_oB = _Shape(">?B").unpack_from
_pack_ox = _Shape(">?x").pack
_unpack_h = _Shape(">h").unpack_from
_pack_h = _Shape(">h").pack
_unpack_hoB = _Shape(">h?B").unpack_from
_pack_hox = _Shape(">h?x").pack
_unpack_hbB = _Shape(">hbB").unpack_from
_pack_hbx = _Shape(">hbx").pack
_unpack_i = _Shape(">i").unpack_from
_pack_i = _Shape(">i").pack
_unpack_ih = _Shape(">ih").unpack_from
_pack_ih = _Shape(">ih").pack


class UpdateFeaturesRequest(Message):
    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class FeatureUpdateKey(Struct):
        __slots__ = (
            "feature",
            "max_version_level",
            "allow_downgrade",
            "upgrade_type",
        )

        def __init__(
            self,
            *,
            feature: str = "",
            max_version_level: int = 0,
            allow_downgrade: bool = False,
            upgrade_type: int = 1,
        ) -> None:
            self.feature: str = feature
            self.max_version_level: int = max_version_level
            self.allow_downgrade: bool = allow_downgrade
            self.upgrade_type: int = upgrade_type

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = EMPTY,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = [] if feature_updates is EMPTY else feature_updates
        self.validate_only: bool = validate_only


def _read_request_feature_update_key(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UpdateFeaturesRequest.FeatureUpdateKey], int]:
    items: list[UpdateFeaturesRequest.FeatureUpdateKey] = []
    if count > 1:
        p.spend(count)
    if version >= 1:
        for _ in range(count):
            x = new(UpdateFeaturesRequest.FeatureUpdateKey)
            x.allow_downgrade = False
            x.feature, pos = p.read_compact_string(buf, pos)
            (x.max_version_level, x.upgrade_type, tags) = _unpack_hbB(buf, pos)
            pos += 4
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(UpdateFeaturesRequest.FeatureUpdateKey)
            x.upgrade_type = 1
            x.feature, pos = p.read_compact_string(buf, pos)
            (x.max_version_level, x.allow_downgrade, tags) = _unpack_hoB(buf, pos)
            pos += 4
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request_feature_update_key(out: Out, items: Sequence[UpdateFeaturesRequest.FeatureUpdateKey], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(p.compact_string(x.feature))
            w(_pack_hbx(x.max_version_level, x.upgrade_type))
    else:
        for x in items:
            w(p.compact_string(x.feature))
            w(_pack_hox(x.max_version_level, x.allow_downgrade))


def _read_request(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UpdateFeaturesRequest], int]:
    items: list[UpdateFeaturesRequest] = []
    if version >= 1:
        for _ in range(count):
            x = new(UpdateFeaturesRequest)
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("FeatureUpdates")
            x.feature_updates, pos = _read_request_feature_update_key(buf, pos, n, version)
            (x.validate_only, tags) = _unpack_oB(buf, pos)
            pos += 2
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(UpdateFeaturesRequest)
            x.validate_only = False
            (x.timeout_ms,) = _unpack_i(buf, pos)
            pos += 4
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("FeatureUpdates")
            x.feature_updates, pos = _read_request_feature_update_key(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_request(out: Out, items: Sequence[UpdateFeaturesRequest], version: int) -> None:
    w = out.small.append
    if version >= 1:
        for x in items:
            w(_pack_i(x.timeout_ms))
            feature_updates = x.feature_updates
            n = len(feature_updates) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if feature_updates:
                _write_request_feature_update_key(out, feature_updates, version)
            w(_pack_ox(x.validate_only))
    else:
        for x in items:
            w(_pack_i(x.timeout_ms))
            feature_updates = x.feature_updates
            n = len(feature_updates) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if feature_updates:
                _write_request_feature_update_key(out, feature_updates, version)
            w(b"\0")


UpdateFeaturesRequest.READ = _read_request
UpdateFeaturesRequest.WRITE = _write_request


class UpdateFeaturesResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    API_KEY = 57
    MIN_VERSION = 0
    MAX_VERSION = 2
    FLEXIBLE_VERSION = 0

    class UpdatableFeatureResult(Struct):
        __slots__ = (
            "feature",
            "error_code",
            "error_message",
        )

        def __init__(
            self,
            *,
            feature: str = "",
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None:
            self.feature: str = feature
            self.error_code: int = error_code
            self.error_message: str | None = error_message

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = [] if results is EMPTY else results


def _read_response_updatable_feature_result(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UpdateFeaturesResponse.UpdatableFeatureResult], int]:
    items: list[UpdateFeaturesResponse.UpdatableFeatureResult] = []
    for _ in range(count):
        x = new(UpdateFeaturesResponse.UpdatableFeatureResult)
        x.feature, pos = p.read_compact_string(buf, pos)
        (x.error_code,) = _unpack_h(buf, pos)
        pos += 2
        x.error_message, pos = p.read_compact_nullable_string(buf, pos)
        tags = buf[pos]
        pos += 1
        if tags:
            pos = p.skip_tags(buf, pos, tags)
        items.append(x)
    return items, pos


def _write_response_updatable_feature_result(out: Out, items: Sequence[UpdateFeaturesResponse.UpdatableFeatureResult], version: int) -> None:
    w = out.small.append
    for x in items:
        w(p.compact_string(x.feature))
        w(_pack_h(x.error_code))
        w(p.compact_nullable_string(x.error_message))
        w(b"\0")


def _read_response(buf: memoryview, pos: int, count: int, version: int) -> tuple[list[UpdateFeaturesResponse], int]:
    items: list[UpdateFeaturesResponse] = []
    if version >= 2:
        for _ in range(count):
            x = new(UpdateFeaturesResponse)
            x.results = []
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    else:
        for _ in range(count):
            x = new(UpdateFeaturesResponse)
            (x.throttle_time_ms, x.error_code) = _unpack_ih(buf, pos)
            pos += 6
            x.error_message, pos = p.read_compact_nullable_string(buf, pos)
            n = buf[pos] - 1
            pos += 1
            if n >= 127:
                n, pos = p.read_compact_length(buf, pos - 1)
            if n < 0:
                raise p.null("Results")
            x.results, pos = _read_response_updatable_feature_result(buf, pos, n, version)
            tags = buf[pos]
            pos += 1
            if tags:
                pos = p.skip_tags(buf, pos, tags)
            items.append(x)
    return items, pos


def _write_response(out: Out, items: Sequence[UpdateFeaturesResponse], version: int) -> None:
    w = out.small.append
    if version >= 2:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            w(b"\0")
    else:
        for x in items:
            w(_pack_ih(x.throttle_time_ms, x.error_code))
            w(p.compact_nullable_string(x.error_message))
            results = x.results
            n = len(results) + 1
            w(BYTE[n] if n < 128 else p.uvarint(n))
            if results:
                _write_response_updatable_feature_result(out, results, version)
            w(b"\0")


UpdateFeaturesResponse.READ = _read_response
UpdateFeaturesResponse.WRITE = _write_response
