"""`env.send` on sockets: one ordered connection per (endpoint, channel), opened when there is something to send.

A `Channel` lives as long as the node and outlives its connections (`outbound_connection.py`).

    channel   idle --send--> connecting --connected--> greeting --versions known--> ready
                ^                |      (TLS first)       |     (SASL first)          |
                +---- resting <--+------------------------+-- closed, reset, timeout -+

Requests wait in the channel until the link is ready, then they are pipelined; answers come in order. When a link ends,
its requests and those that wait for it fail as "disconnected". The caller decides whether to send them again, because
it knows whether the answer still matters. The next connection attempt is made at once after a connection that worked,
and after a short pause (doubling up to `MAX_BACKOFF_S`) after one that did not.

Each request fails or is answered once, always from the loop, never inside `send`.

Trap: after a timeout of a request its connection is closed, since its late answer would be taken for the next one.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heirlog.env import OnResult, SendFailure
from heirlog.protocol.types import Endpoint
from heirlog.server.connecting import NothingListens, connected_socket
from heirlog.server.outbound_connection import OutboundConnection, OutboundSettings, QueuedRequest

if TYPE_CHECKING:
    from heirlog.server.peers import Peer

MAX_REQUESTS = 1000
"""Unanswered requests per channel; one more fails at once."""
FIRST_BACKOFF_S = 0.02
MAX_BACKOFF_S = 0.5


class ClientPool:
    """All connections that this node opens. `client_id` is what peers see in the request header."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client_id: str,
        staging: memoryview,
        setup_timeout_ms: int = 10_000,
        peer_of: Callable[[str], Peer | None] = lambda channel: None,
        source: str = "",
    ) -> None:
        """setup_timeout_ms: socket.connection.setup.timeout.ms, of the TCP connection and again of the handshake.

        peer_of: how to log in to what a channel reaches; None: without TLS and SASL. source: the address from which to
        connect; empty: the system chooses.
        """
        self._loop = loop
        self._settings = OutboundSettings(loop, client_id, staging, setup_timeout_ms / 1000)
        self._source = source
        self._peer_of = peer_of
        self._channels: dict[tuple[Endpoint, str], Channel] = {}

    def send(self, to: Endpoint, channel: str, request: Any, on_result: OnResult, timeout_ms: int) -> None:
        """See `heirlog.env.Env.send`."""
        found = self._channels.get((to, channel))
        if found is None:
            found = self._channels[to, channel] = Channel(self._settings, to, self._peer_of(channel), self._source)
        found.send(QueuedRequest(request, on_result, self._loop.time() + timeout_ms / 1000))

    def disconnect(self, to: Endpoint) -> None:
        """See `heirlog.env.NodeEnv.disconnect`."""
        for (endpoint, _), channel in self._channels.items():
            if endpoint == to:
                self._loop.call_soon(channel.disconnect)

    def stop(self) -> None:
        """Close everything without calling back."""
        for channel in self._channels.values():
            channel.stop()
        self._channels.clear()


class Channel:
    """The queue towards one endpoint for one purpose."""

    def __init__(self, settings: OutboundSettings, endpoint: Endpoint, peer: Peer | None, source: str) -> None:
        self._settings = settings
        self._peer = peer
        self._source = source
        self._loop = settings.loop
        self._endpoint = endpoint
        self._waiting: deque[QueuedRequest] = deque()
        self._link: OutboundConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._backoff_s = 0.0
        self._retry_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._start_timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def send(self, request: QueuedRequest) -> None:
        link = self._link
        outstanding = len(self._waiting) + (len(link.sent) if link is not None else 0)
        if outstanding >= MAX_REQUESTS:
            full = SendFailure("disconnected", f"{MAX_REQUESTS} requests to {self._endpoint} are unanswered")
            self._loop.call_soon(request.on_result, full)
            return
        self._set_timer(request.deadline)
        if link is not None and link.ready and not link.must_log_in:
            link.send(request)
            return
        self._waiting.append(request)
        if link is not None and link.ready:
            link.log_in_again()
            return
        if link is None and self._connecting is None and self._start_timer is None:
            backoff = max(0.0, self._retry_at - self._loop.time())
            if backoff:
                self._start_timer = self._loop.call_later(backoff, self._start)
            else:
                self._start()

    def stop(self) -> None:
        self._stopped = True
        self._waiting.clear()
        for timer in (self._timer, self._start_timer):
            if timer is not None:
                timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            self._link.sent.clear()
            self._link.stream.abort("the node is stopping")

    def disconnect(self) -> None:
        if self._stopped:
            return
        if self._link is not None:
            self._link.stream.abort("another peer took its place")
            return
        if self._start_timer is not None:
            self._start_timer.cancel()
            self._start_timer = None
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        self._fail_all([], "another peer took its place")

    # connecting

    def _start(self) -> None:
        self._start_timer = None
        if self._waiting:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        sock: socket.socket | None = None
        try:
            async with asyncio.timeout(self._settings.setup_timeout_s):
                sock = await connected_socket(self._loop, self._endpoint, self._source)
            link = OutboundConnection(self, self._settings, self._peer, sock, self._endpoint.host)
        except (OSError, ValueError) as error:  # TimeoutError; UnicodeError, of a host that can be no name
            if sock is not None:
                sock.close()
            self._connecting = None
            self._connect_failed(error)
            return
        self._connecting = None
        self._link = link
        self._set_timer(self._link.begin())

    def link_ready(self, link: OutboundConnection) -> None:
        if self._stopped:
            return
        self._backoff_s = 0.0
        while self._waiting:
            link.send(self._waiting.popleft())

    def link_ended(self, link: OutboundConnection, reason: str) -> None:
        self._link = None
        if self._stopped:
            return
        if not link.ready:
            self._back_off()
        self._fail_all(list(link.sent), reason)

    def _connect_failed(self, error: OSError | ValueError) -> None:
        self._back_off()
        why = getattr(error, "strerror", None) or str(error) or "timed out while connecting"
        self._fail_all([], why, error.host if isinstance(error, NothingListens) else "")

    def _back_off(self) -> None:
        self._backoff_s = min(max(2 * self._backoff_s, FIRST_BACKOFF_S), MAX_BACKOFF_S)
        self._retry_at = self._loop.time() + self._backoff_s * random.uniform(0.5, 1)

    def _fail_all(self, requests: list[QueuedRequest], reason: str, refused_by: str = "") -> None:
        """Fail `requests` and then the waiting ones. They are removed first: a callback may send again at once."""
        requests += self._waiting
        self._waiting = deque()
        failure = SendFailure("disconnected", f"{self._endpoint}: {reason}", refused_by)
        for request in requests:
            request.on_result(failure)

    # time

    def watch(self, deadline: float) -> None:
        self._set_timer(deadline)

    def _set_timer(self, deadline: float) -> None:
        """One timer per channel, at the earliest deadline or before."""
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = [request for request in self._waiting if request.deadline <= now]
        if late:
            self._waiting = deque(request for request in self._waiting if request.deadline > now)
        if self._link is not None:
            self._link.drop_late(now)
        self._watch_remaining()
        for request in late:
            request.on_result(SendFailure("timed-out", f"no connection to {self._endpoint}"))

    def _watch_remaining(self) -> None:
        deadlines = [request.deadline for request in self._waiting]
        if self._link is not None and (next_deadline := self._link.next_deadline) is not None:
            deadlines.append(next_deadline)
        if deadlines:
            self._set_timer(min(deadlines))
