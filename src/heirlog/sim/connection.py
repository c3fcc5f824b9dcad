"""A connection: its client's end, its server's end, and two streams between them.

    opening --first request arrives: accepted--> open --closed by either side, killed, reset, timed out--> closed
       +__________nobody listens: refused________________________________________________________________/

One joins one incarnation (or simulated client) to one endpoint, one per channel, opened by the first request. A request
that gets no answer in time fails with "timed-out"; its connection is closed then, and the others that wait on it fail
with "disconnected". Trap: the server is notified only when the closing reaches it.

The server's end is the `Transport` that the node answers through.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from heirlog.env import OnResult, SendFailure
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.types import Endpoint
from heirlog.sim.link import NetworkLink, Stream
from heirlog.sim.loose_transport import LooseTransport
from heirlog.sim.world import Event, Process, World

HandOver: TypeAlias = Callable[[Any], Any]
"""Makes the message that a receiver gets from the one that was sent."""


class ServerConnection(Protocol):
    """The node's end of an accepted connection: `heirlog.node.connection.ClientConnection`."""

    @property
    def paused(self) -> bool: ...

    def received(self, header: RequestHeader, request: Any, size: int = 0) -> None: ...

    def closed(self) -> None: ...

    def read_failed(self, path: str, error: OSError) -> None: ...


@dataclass(frozen=True, slots=True)
class Listening:
    process: Process
    name: str
    accept: Callable[[SimConnection], ServerConnection]


class Carrier(Protocol):
    """What a connection needs of the network: `heirlog.sim.network.Network`."""

    world: World
    loose: LooseTransport | None
    answer_delay_us: Callable[[Any], int] | None
    answer_listeners: list[Callable[[Process, Any, Any], None]]

    def host_of(self, endpoint: Endpoint) -> str: ...

    def link(self, source: str, target: str) -> NetworkLink: ...

    def put(
        self,
        stream: Stream,
        process: Process | None,
        label: str,
        deliver: Callable[[], None],
        connection: SimConnection,
    ) -> None: ...

    def put_last(self, stream: Stream, label: str, deliver: Callable[[], None]) -> None: ...

    def listening(self, endpoint: Endpoint) -> Listening | None: ...

    counts_bytes: bool

    def size_of(self, header: RequestHeader, request: Any) -> int: ...

    def hand_over_request(self, header: RequestHeader, request: Any) -> HandOver | None: ...

    def hand_over_response(self, header: RequestHeader, response: Any) -> tuple[Any, HandOver | None]: ...

    def accepted(self, connection: SimConnection) -> None: ...

    def forget_accepted(self, connection: SimConnection) -> None: ...

    def forget(self, connection: SimConnection) -> None: ...


_Call: TypeAlias = tuple[Any, OnResult, int]
"""A request that waits for its answer, what gets the result, and the deadline in microseconds."""


class SimConnection:
    """Both ends of a connection. The server's end is the `Transport` that the node answers through."""

    __slots__ = (
        "_correlation_id",
        "_inbox",
        "_network",
        "_next_deadline",
        "_next_deadline_us",
        "_world",
        "back",
        "calls",
        "channel",
        "client",
        "client_open",
        "endpoint",
        "forth",
        "listener",
        "node_end",
        "peer_host",
        "server",
        "server_open",
    )

    def __init__(self, network: Carrier, client: Process, endpoint: Endpoint, channel: str) -> None:
        self._network = network
        self._world = network.world
        self.client = client
        self.peer_host = client.host.name
        """The client's, as the node sees it."""
        self.endpoint = endpoint
        self.channel = channel
        self.listener = ""
        host = network.host_of(endpoint)
        self.forth = Stream(network.link(client.host.name, host))
        self.back = Stream(network.link(host, client.host.name))
        self.calls: dict[int, _Call] = {}
        self.client_open = True
        self.server: Process | None = None
        self.server_open = False
        self.node_end: ServerConnection | None = None
        self._correlation_id = 0
        self._inbox: list[tuple[RequestHeader, Any]] = []
        self._next_deadline: Event | None = None
        self._next_deadline_us = 0

    # the client's end

    def submit(self, request: Any, on_result: OnResult, timeout_us: int, newest: int | None = None) -> None:
        self._correlation_id += 1
        correlation_id = self._correlation_id
        deadline_us = self._world.now_us + timeout_us
        self.calls[correlation_id] = (request, on_result, deadline_us)
        if self._next_deadline is None or deadline_us < self._next_deadline_us:
            self._expect_answers_by(deadline_us)
        version = request.MAX_VERSION if newest is None else min(newest, request.MAX_VERSION)
        network, peer_host = self._network, self.peer_host
        header = RequestHeader(request.API_KEY, version, correlation_id, peer_host)
        hand_over = network.hand_over_request(header, request)
        label = f"{peer_host}>{type(request).__name__}"
        if network.loose is not None and self._is_late(network.loose, header, request, hand_over):
            return
        server = self.server
        if server is None:
            connects = partial(self._request_connection, header, label, request, hand_over)
            network.put(self.forth, None, label, connects, self)
        else:
            arrives = partial(self._request_arrives, header, request, hand_over)
            network.put(self.forth, server, label, arrives, self)

    def _is_late(self, loose: LooseTransport, header: RequestHeader, request: Any, hand_over: HandOver | None) -> bool:
        """Whether the request arrives late, or not at all because an earlier answer comes in its place."""
        answer = loose.late_answer(self.client, request)
        if answer is not None:
            label = f"late answer to {type(request).__name__}"
            self._world.schedule(1000, self.client, label, partial(self._answered, header.correlation_id, *answer))
            return True
        late_ms = loose.request_late_ms(self.client, request)
        if late_ms is None:
            return False
        self.forth.stalled = True
        label = f"late {type(request).__name__}"
        arrives = partial(self._arrives_late, header, label, request, hand_over)
        self._world.schedule(late_ms * 1000, None, label, arrives)
        return True

    def _arrives_late(self, header: RequestHeader, label: str, request: Any, hand_over: HandOver | None) -> None:
        """On another connection, whose answers go nowhere; not while its own one is open, which keeps the order."""
        found = self._network.listening(self.endpoint)
        if found is not None and not (self.client_open and self.client.alive):
            late = SimConnection(self._network, self.client, self.endpoint, self.channel)
            late._accept(found)
            self._world.schedule(0, found.process, label, partial(late._request_is_read, header, request, hand_over))

    def _answered(self, correlation_id: int, response: Any, hand_over: HandOver | None) -> None:
        if self.back.cut_us is not None and self.back.is_cut(self._world.now_us):
            return
        if hand_over is not None:
            response = hand_over(response)
        call = self.calls.pop(correlation_id, None)
        if call is None or not self.client_open:
            return
        _, on_result, _ = call
        on_result(response)

    def _expect_answers_by(self, deadline_us: int) -> None:
        """One event for all requests of the connection, because nearly all are answered in time."""
        if self._next_deadline is not None:
            self._next_deadline.cancel()
        self._next_deadline_us = deadline_us
        self._next_deadline = self._world.schedule_at(deadline_us, None, "deadline", self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._next_deadline = None
        now_us, later_us = self._world.now_us, -1
        for correlation_id, (request, _, deadline_us) in self.calls.items():
            if deadline_us <= now_us:
                name = type(request).__name__
                timed_out = partial(self._timed_out, correlation_id, name)
                self._world.schedule(0, self.client, f"timeout {name}", timed_out)
            elif later_us < 0 or deadline_us < later_us:
                later_us = deadline_us
        if later_us >= 0:
            self._expect_answers_by(later_us)

    def _timed_out(self, correlation_id: int, name: str) -> None:
        call = self.calls.pop(correlation_id, None)
        if call is None:
            return
        self.close_from_client(f"{name} timed out")
        _, on_result, _ = call
        on_result(SendFailure("timed-out", f"no answer from {self.endpoint} in time"))

    def close_from_client(self, why: str) -> None:
        """The client closes: waiting requests fail, and the server is notified when the closing arrives."""
        if not self.client_open:
            return
        self._fail_calls(why)
        self._network.put_last(self.forth, "client-closed", self._server_closes)

    def client_closed(self, why: str, refused_by: str = "") -> None:
        if self.client_open and self.client.alive:
            self._fail_calls(why, refused_by)

    def _refused(self) -> None:
        """Nothing listens at the endpoint."""
        self.client_closed("refused", self._network.host_of(self.endpoint))

    def _fail_calls(self, why: str, refused_by: str = "") -> None:
        self.client_open = False
        if self._next_deadline is not None:
            self._next_deadline.cancel()
            self._next_deadline = None
        self._network.forget(self)
        calls, self.calls = self.calls, {}
        failure = SendFailure("disconnected", f"{self.endpoint}: {why}", refused_by)
        for request, on_result, _ in calls.values():
            # an event each: a failure may end the process, and then the next must not run
            self._world.schedule(0, self.client, f"failed {type(request).__name__}", partial(on_result, failure))

    # the server's end

    def _request_connection(self, header: RequestHeader, label: str, request: Any, hand_over: HandOver | None) -> None:
        """The first requests of a connection arrive: check whether a process listens."""
        if self.forth.is_cut(self._world.now_us):
            return
        if self.server is None:
            found = self._network.listening(self.endpoint)
            if found is None or not self.client_open:
                self._network.put_last(self.back, "refused", self._refused)
                return
            self._accept(found)
        server = self.server
        assert server is not None
        self._world.schedule(0, server, label, partial(self._request_is_read, header, request, hand_over))

    def _accept(self, found: Listening) -> None:
        """What the kernel does, even while the process is paused. What the node does is its first event."""
        self.server = found.process
        self.server_open = True
        self.listener = found.name
        self._network.accepted(self)
        self._world.schedule(0, found.process, f"accept {self.client.host.name}", lambda: self._connected(found))

    def _connected(self, found: Listening) -> None:
        if self.server_open:
            self.node_end = found.accept(self)

    def _request_arrives(self, header: RequestHeader, request: Any, hand_over: HandOver | None) -> None:
        if self.forth.cut_us is None or not self.forth.is_cut(self._world.now_us):
            self._request_is_read(header, request, hand_over)

    def _request_is_read(self, header: RequestHeader, request: Any, hand_over: HandOver | None) -> None:
        if hand_over is not None:
            request = hand_over(request)
        node_end = self.node_end
        if not self.server_open or node_end is None:
            return
        if self._inbox or node_end.paused:
            self._inbox.append((header, request))
        else:
            size = self._network.size_of(header, request) if self._network.counts_bytes else 0
            node_end.received(header, request, size)

    def _server_closes(self) -> None:
        """The closing has reached the server's kernel; its process is notified when it runs."""
        if self.server is not None:
            self._world.schedule(0, self.server, "closed", self._node_closes)

    def _node_closes(self) -> None:
        if not self.server_open:
            return
        self.server_open = False
        self._network.forget_accepted(self)
        if self.node_end is not None:
            self.node_end.closed()

    def server_gone(self, why: str) -> None:
        """The server's process closed, or is gone: the client is notified when that event arrives."""
        if not self.server_open:
            return
        self.server_open = False
        self._network.forget_accepted(self)
        self._network.put_last(self.back, "server-closed", lambda: self.client_closed(why))

    # Transport, as the node sees it

    def send(self, header: RequestHeader, response: Any) -> None:
        if not self.server_open:
            return
        network = self._network
        call = self.calls.get(header.correlation_id)
        request = None if call is None else call[0]
        if request is not None and self.server is not None:
            for listener in network.answer_listeners:
                listener(self.server, request, response)
        try:
            response, hand_over = network.hand_over_response(header, response)
        except OSError as error:
            self._cannot_read(error)
            return
        if (
            network.loose is not None
            and request is not None
            and network.loose.keeps_answer(self.client, request, (response, hand_over))
        ):
            self.back.stalled = True
            return
        if network.answer_delay_us is not None and request is not None:
            late_us = network.answer_delay_us(request)
            if late_us:
                self.back.clear_at_us = max(self.back.clear_at_us, self._world.now_us + late_us)
        label = f"{self.endpoint.host}<{type(response).__name__}"
        answered = partial(self._answered, header.correlation_id, response, hand_over)
        network.put(self.back, self.client, label, answered, self)

    def send_token(self, token: bytes) -> None:
        raise AssertionError("listeners of the simulator have no SASL")

    def authenticated(self) -> None:
        """There are no limits to lift."""

    def random_bytes(self, count: int) -> bytes:
        raise AssertionError("listeners of the simulator have no SASL")

    def close(self) -> None:
        server = self.server
        if server is None or not self.server_open:
            return
        self.server_gone("closed by the server")
        if self.node_end is not None:
            self._world.schedule(0, server, "closed", self.node_end.closed)

    def _cannot_read(self, error: OSError) -> None:
        """A region of an answer cannot be read: the connection closes, as it does when sendfile fails."""
        server, node_end = self.server, self.node_end
        assert server is not None and node_end is not None
        self._world.schedule(0, server, "read failed", lambda: node_end.read_failed(error.filename, error))
        self.close()

    def run(self, handler: Callable[[], None]) -> None:
        handler()

    def pause(self) -> None:
        """Each request asks `paused` before it is handed over."""

    def resume(self) -> None:
        server = self.server
        assert server is not None
        self._world.schedule(0, server, "resume", self._drain)

    def _drain(self) -> None:
        while self._inbox and self.node_end is not None and self.server_open and not self.node_end.paused:
            header, request = self._inbox.pop(0)
            self.node_end.received(header, request, self._network.size_of(header, request))
