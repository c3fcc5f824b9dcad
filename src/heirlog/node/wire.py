"""Decodes a frame to a request, or to the reason why that is not possible.

Kafka's rules for requests that cannot be served: an ApiVersions request of an unknown version is answered in version 0
with error 35 and the ranges (strict clients fail on anything else). Every other unknown key, unsupported version or
malformed body closes the connection, since the client could not read an answer.

A heartbeat says the same, byte for byte, until something changes for its member. Only its correlation id differs. So a
connection keeps the last request of such an API (`RepeatedRequest`) and does not decode the same bytes again.
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
_CORRELATION_ID = struct.Struct(">i")
_CORRELATION_ID_AT = 4
_AFTER_CORRELATION_ID = 8


@dataclass(frozen=True, slots=True)
class RefusedFrame:
    """`response` is to be sent under `header`; without one the connection is closed for `reason`."""

    reason: str
    header: RequestHeader | None = None
    response: Any = None


class RepeatedRequest:
    """A request that may come again. It is never changed (`apis.common.call`): handlers may get it many times."""

    __slots__ = ("_api", "_header", "_rest", "request")

    def __init__(self, header: RequestHeader, request: Any, frame: memoryview) -> None:
        self.request = request
        self._header = header
        self._api = bytes(frame[:_CORRELATION_ID_AT])
        self._rest = bytes(frame[_AFTER_CORRELATION_ID:])

    def header_in(self, frame: memoryview) -> RequestHeader | None:
        """The header of a frame with the same request; None if it has another one."""
        if frame[_AFTER_CORRELATION_ID:] != self._rest or frame[:_CORRELATION_ID_AT] != self._api:
            return None
        known = self._header
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, _CORRELATION_ID_AT)
        return RequestHeader(known.api_key, known.api_version, correlation_id, known.client_id)


def decode(listener: ListenerRoutes, frame: memoryview) -> tuple[RequestHeader, Any] | RefusedFrame:
    """The header and the request in `frame` (without its length prefix), which this listener serves."""
    try:
        header, position = parse_header(frame)
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
    try:
        return header, decode_request(header, frame, position)
    except Malformed as error:
        return RefusedFrame(f"API key {header.api_key} version {header.api_version}: {error}")


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
