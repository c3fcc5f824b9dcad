"""A pool of connections, and a peer for it whose answers the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_request, parse_header
from heirlog.protocol.messages import (
    ApiVersionsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from heirlog.protocol.types import Endpoint
from heirlog.server.client_pool import ClientPool

HEARTBEAT = 63
LONG_MS = 60_000
"""Of requests that are answered, or fail for another reason than time."""
Step = Callable[[Any, RequestHeader, Any], None]


def heartbeat(broker_id: int) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=broker_id)


class Peer:
    """Greets like a node that serves heartbeats, and leaves them to `step`."""

    def __init__(self, fake_node: Any, step: Step, newest_greeting: int = 4) -> None:
        self.greetings: list[int] = []
        self._step = step
        self._newest = newest_greeting
        self.node = fake_node(self._answer)
        self.endpoint: Endpoint = self.node.endpoint

    def _answer(self, client: Any, header: RequestHeader, frame: memoryview) -> None:
        if header.api_key != 18:
            self._step(client, header, decode_request(header, frame, parse_header(frame)[1]))
            return
        self.greetings.append(header.api_version)
        keys = [
            ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=self._newest),
            ApiVersionsResponse.ApiVersion(api_key=HEARTBEAT, min_version=0, max_version=1),
        ]
        if header.api_version > self._newest:
            old = RequestHeader(18, 0, header.correlation_id, None)
            client.transport.send(old, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys))
        else:
            client.transport.send(header, ApiVersionsResponse(api_keys=keys))


def pool() -> ClientPool:
    return ClientPool(asyncio.get_running_loop(), "test", memoryview(bytearray(65536)))


def echo_epoch(client: Any, header: RequestHeader, request: Any) -> None:
    client.transport.send(header, BrokerHeartbeatResponse(throttle_time_ms=request.broker_id))


def silent(client: Any, header: RequestHeader, request: Any) -> None:
    return None


async def all_of(results: list[Any], count: int) -> list[Any]:
    async with asyncio.timeout(60):
        while len(results) < count:
            await asyncio.sleep(0.001)
    return results


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())
