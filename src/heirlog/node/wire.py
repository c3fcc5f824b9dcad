"""Decodes a frame to a request, or to the reason why that is not possible.

Kafka's rules for requests that cannot be served: an ApiVersions request of an unknown version is answered in version 0
with error 35 and the ranges (strict clients fail on anything else). Every other unknown key, unsupported version or
malformed body closes the connection, since the client could not read an answer.

A heartbeat says the same, byte for byte, until something changes for its member. Only its correlation id differs. So a
connection keeps the last request of such an API (`RepeatedRequest`) and does not decode the same bytes again. Of other
requests it keeps the last header (`KnownHeader`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from heirlog.apis.common.api import Role
from heirlog.node.router import ROUTES, ListenerRoutes, routes_with_unstable
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_request, parse_header
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.protocol.primitives import Malformed

REPEATED_BYTES_MAX = 512
"""Of a request that a connection keeps. A heartbeat that changes nothing has its group, its member and its epoch."""
_API_AND_CORRELATION_ID = struct.Struct(">ii")
_AFTER_CORRELATION_ID = 8


@dataclass(frozen=True, slots=True)
class RefusedFrame:
    """`response` is to be sent under `header`; without one the connection is closed for `reason`."""

    reason: str
    header: RequestHeader | None = None
    response: Any = None


class KnownHeader:
    """The header of a request. The next one of its connection mostly has the same, but for the correlation id."""

    __slots__ = ("_api", "_end", "_header", "_rest")

    def __init__(self, header: RequestHeader, frame: memoryview, end: int | None) -> None:
        """end: where the bytes that have to be the same end; None: they are all of the frame."""
        self._header = header
        self._end = end
        self._api: int = _API_AND_CORRELATION_ID.unpack_from(frame)[0]
        self._rest = bytes(frame[_AFTER_CORRELATION_ID:end])

    def header_in(self, frame: memoryview) -> RequestHeader | None:
        """The header of a frame that begins with the same bytes; None if it does not."""
        if frame[_AFTER_CORRELATION_ID : self._end] != self._rest:
            return None
        api, correlation_id = _API_AND_CORRELATION_ID.unpack_from(frame)  # there is a client id behind them
        if api != self._api:
            return None
        known = self._header
        return RequestHeader(known.api_key, known.api_version, correlation_id, known.client_id)


class RepeatedRequest(KnownHeader):
    """A request that may come again. It is never changed (`apis.common.call`): handlers may get it many times."""

    __slots__ = ("request",)

    def __init__(self, header: RequestHeader, request: Any, frame: memoryview) -> None:
        super().__init__(header, frame, None)
        self.request = request


class FrameDecoder:
    """Of one connection to this listener."""

    __slots__ = ("_known", "_known_end", "_listener")

    def __init__(self, listener: ListenerRoutes) -> None:
        self._listener = listener
        self._known: KnownHeader | None = None
        self._known_end = 0

    def decode(self, frame: memoryview) -> tuple[RequestHeader, Any] | RefusedFrame:
        """The header and the request in `frame` (without its length prefix), which the listener serves."""
        known = self._known
        header = None if known is None else known.header_in(frame)
        if header is None:
            parsed = self._parse(frame)
            if isinstance(parsed, RefusedFrame):
                return parsed
            header = parsed
        try:
            return header, decode_request(header, frame, self._known_end)
        except Malformed as error:
            return RefusedFrame(f"API key {header.api_key} version {header.api_version}: {error}")

    def _parse(self, frame: memoryview) -> RequestHeader | RefusedFrame:
        """A header that is not the one before; it is the known one now."""
        listener = self._listener
        try:
            header, end = parse_header(frame)
        except Malformed as error:
            return RefusedFrame(str(error))
        route = listener.routes.get(header.api_key)
        if route is None:
            return RefusedFrame(f"API key {header.api_key} is not served on listener {listener.name}")
        if not route.min_version <= header.api_version <= route.max_version:
            if header.api_key == ApiKey.API_VERSIONS:
                answered = RequestHeader(ApiKey.API_VERSIONS, 0, header.correlation_id, header.client_id)
                return RefusedFrame("ApiVersions of an unknown version", answered, unsupported_api_versions(listener))
            return RefusedFrame(
                f"API key {header.api_key} version {header.api_version} is not served: "
                f"{route.min_version} to {route.max_version} are"
            )
        self._known, self._known_end = KnownHeader(header, frame, end), end
        return header


def decode(listener: ListenerRoutes, frame: memoryview) -> tuple[RequestHeader, Any] | RefusedFrame:
    """One frame, without those before it."""
    return FrameDecoder(listener).decode(frame)


def api_keys(listener: ListenerRoutes) -> list[ApiVersionsResponse.ApiVersion]:
    """What ApiVersions advertises on this listener, by key. Shared by all responses: messages are never changed."""
    return _api_keys_of(listener.role, listener.serves_unstable)


@cache
def _api_keys_of(role: Role, serves_unstable: bool) -> list[ApiVersionsResponse.ApiVersion]:
    routes = routes_with_unstable(role) if serves_unstable else ROUTES[role]
    return [
        ApiVersionsResponse.ApiVersion(
            api_key=route.key, min_version=route.advertised[0], max_version=route.advertised[1]
        )
        for _, route in sorted(routes.items())
        if route.advertised is not None
    ]


def unsupported_api_versions(listener: ListenerRoutes) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=api_keys(listener))
