"""Ordered connections between hosts, and everything that can go wrong with them.

A connection joins one incarnation (or simulated client) to one endpoint, one per channel, opened by the first request:

    opening --first request arrives: accepted--> open --closed by either side, killed, reset, timed out--> closed
       +__________nobody listens: refused________________________________________________________________/

Each direction is a stream: what is put in comes out in order, each item after a latency of its own. What can happen:

    delay, slow link   latencies grow
    loss               the item and all behind it on this stream never arrive; the sender learns it by its timeout
    partition          one direction between two hosts holds what it is given until it heals, then delivers it: TCP
                       sends again. Closing news are held too: a process that dies behind a partition dies unseen
    reset              both ends are told, what was under way is gone
    kill               the peer is told. What the dead process had sent may still arrive, up to a random moment
    pause              the peer sees silence: the kernel accepts connections and keeps what arrives

A request that gets no answer in time fails with "timed-out"; its connection is closed then, and the others that wait on
it fail with "disconnected". Trap: the server hears of that only when the closing reaches it.

Messages pass as the objects themselves. Nobody may change one after sending it: a seeded sample is compared at
delivery with what it was when sent. With `wire=True` every message is encoded and decoded instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from heirlog.env import OnResult, SendFailure
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.types import Endpoint
from heirlog.sim import passage
from heirlog.sim.world import Event, Process, World

SAMPLED_MESSAGES = 16
"""One message in so many is hashed when sent and when delivered."""


class ChangedAfterSend(AssertionError):
    """Somebody changed a message that was already sent."""


class ServerConnection(Protocol):
    """The node's end of an accepted connection: `heirlog.node.connection.ClientConnection`."""

    @property
    def paused(self) -> bool: ...

    def received(self, header: RequestHeader, request: Any) -> None: ...

    def closed(self) -> None: ...

    def read_failed(self, path: str, error: OSError) -> None: ...


class Link:
    """One direction between two hosts."""

    __slots__ = ("blocked", "held", "loss", "low_us", "reset", "span_us")

    def __init__(self, low_us: int, span_us: int) -> None:
        self.low_us = low_us
        self.span_us = span_us
        """Latency is between low and low + span, mostly near low."""
        self.loss = 0.0
        """Chance of an item to be lost."""
        self.reset = 0.0
        """Chance of an item to reset its connection."""
        self.blocked = False
        self.held: list[tuple[_Stream, _Item]] = []


@dataclass(slots=True)
class _Item:
    """Something on its way: `deliver` runs at the far end, in `process` (None: nobody's, it finds out itself)."""

    process: Process | None
    label: str
    deliver: Callable[[], None]
    survives: bool = False
    """Arrives although the stream was lost or cut: the news that the connection is closed."""


class _Stream:
    __slots__ = ("clear_at_us", "cut_us", "link", "stalled")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.clear_at_us = 0
        self.stalled = False
        self.cut_us: int | None = None
        """What would arrive later than this does not."""


class _Call:
    __slots__ = ("on_result", "request", "timer")

    def __init__(self, request: Any, on_result: OnResult, timer: Event) -> None:
        self.request = request
        self.on_result = on_result
        self.timer = timer


class Connection:
    """Both ends of a connection. The server's end is the `Transport` that the node answers through."""

    __slots__ = (
        "_correlation_id",
        "_inbox",
        "_network",
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
        "server",
        "server_open",
    )

    def __init__(self, network: Network, client: Process, endpoint: Endpoint, channel: str) -> None:
        self._network = network
        self._world = network.world
        self.client = client
        self.endpoint = endpoint
        self.channel = channel
        self.listener = ""
        host = network.host_of(endpoint)
        self.forth = _Stream(network.link(client.host.name, host))
        self.back = _Stream(network.link(host, client.host.name))
        self.calls: dict[int, _Call] = {}
        self.client_open = True
        self.server: Process | None = None
        self.server_open = False
        self.node_end: ServerConnection | None = None
        self._correlation_id = 0
        self._inbox: list[tuple[RequestHeader, Any]] = []

    # the client's end

    def submit(self, request: Any, on_result: OnResult, timeout_us: int) -> None:
        self._correlation_id += 1
        correlation_id = self._correlation_id
        client = self.client
        name = type(request).__name__
        timer = self._world.schedule(
            timeout_us, client, f"timeout {name}", lambda: self._timed_out(correlation_id, name)
        )
        self.calls[correlation_id] = _Call(request, on_result, timer)
        header = RequestHeader(request.API_KEY, request.MAX_VERSION, correlation_id, client.host.name)
        hand_over = self._network.hand_over_request(header, request)
        label = f"{client.host.name}>{name}"
        server = self.server
        if server is None:
            self._network.put(self.forth, _Item(None, label, lambda: self._knock(header, label, hand_over)), self)
        else:
            self._network.put(
                self.forth, _Item(server, label, lambda: self._request_arrives(header, hand_over())), self
            )

    def _answered(self, correlation_id: int, response: Any) -> None:
        call = self.calls.pop(correlation_id, None)
        if call is None or not self.client_open:
            return
        call.timer.cancel()
        call.on_result(response)

    def _timed_out(self, correlation_id: int, name: str) -> None:
        call = self.calls.pop(correlation_id, None)
        if call is None:
            return
        self.close_from_client(f"{name} timed out")
        call.on_result(SendFailure("timed-out", f"no answer from {self.endpoint} in time"))

    def close_from_client(self, why: str) -> None:
        """The client closes: what waits fails, the server hears of it when the news arrive."""
        if not self.client_open:
            return
        self._fail_calls(why)
        self._network.put(self.forth, _Item(None, "client-closed", self._server_told, survives=True), self)

    def _client_told(self, why: str) -> None:
        if self.client_open and self.client.alive:
            self._fail_calls(why)

    def _fail_calls(self, why: str) -> None:
        self.client_open = False
        self._network.forget(self)
        calls, self.calls = self.calls, {}
        failure = SendFailure("disconnected", f"{self.endpoint}: {why}")
        for call in calls.values():
            call.timer.cancel()
            # an event each: a failure may end the process, and then the next must not run
            self._world.schedule(
                0, self.client, f"failed {type(call.request).__name__}", _later(call.on_result, failure)
            )

    # the server's end

    def _knock(self, header: RequestHeader, label: str, hand_over: Callable[[], Any]) -> None:
        """The first requests of a connection arrive: does anybody listen?"""
        if self.server is None:
            found = self._network.listening(self.endpoint)
            if found is None or not self.client_open:
                self._network.put(
                    self.back, _Item(None, "refused", lambda: self._client_told("refused"), survives=True), self
                )
                return
            self._accept(found)
        server = self.server
        assert server is not None
        self._world.schedule(0, server, label, lambda: self._request_arrives(header, hand_over()))

    def _accept(self, found: _Listening) -> None:
        """The kernel's part: done even while the process is paused. The node's part is its first event."""
        self.server = found.process
        self.server_open = True
        self.listener = found.name
        self._network.accepted(self)
        self._world.schedule(0, found.process, f"accept {self.client.host.name}", lambda: self._connected(found))

    def _connected(self, found: _Listening) -> None:
        if self.server_open:
            self.node_end = found.accept(self)

    def _request_arrives(self, header: RequestHeader, request: Any) -> None:
        if not self.server_open or self.node_end is None:
            return
        if self._inbox or self.node_end.paused:
            self._inbox.append((header, request))
        else:
            self.node_end.received(header, request)

    def _server_told(self) -> None:
        """The closing has reached the server's kernel; its process hears of it when it runs."""
        if self.server is not None:
            self._world.schedule(0, self.server, "closed", self._node_told)

    def _node_told(self) -> None:
        if not self.server_open:
            return
        self.server_open = False
        self._network.forget_accepted(self)
        if self.node_end is not None:
            self.node_end.closed()

    def server_gone(self, why: str) -> None:
        """The server's process closed, or is gone: the client is told when the news arrive."""
        if not self.server_open:
            return
        self.server_open = False
        self._network.forget_accepted(self)
        self._network.put(self.back, _Item(None, "server-closed", lambda: self._client_told(why), survives=True), self)

    # Transport, as the node sees it

    @property
    def peer_host(self) -> str:
        return self.client.host.name

    def send(self, header: RequestHeader, response: Any) -> None:
        if not self.server_open:
            return
        try:
            hand_over = self._network.hand_over_response(header, response)
        except OSError as error:
            self._cannot_read(error)
            return
        correlation_id = header.correlation_id
        label = f"{self.endpoint.host}<{type(response).__name__}"
        self._network.put(
            self.back, _Item(self.client, label, lambda: self._answered(correlation_id, hand_over())), self
        )

    def close(self) -> None:
        server = self.server
        if server is None or not self.server_open:
            return
        self.server_gone("closed by the server")
        if self.node_end is not None:
            self._world.schedule(0, server, "closed", self.node_end.closed)

    def _cannot_read(self, error: OSError) -> None:
        """A region of an answer: the connection ends, as it does where sendfile fails."""
        server, node_end = self.server, self.node_end
        assert server is not None and node_end is not None
        self._world.schedule(0, server, "read failed", lambda: node_end.read_failed(error.filename, error))
        self.close()

    def run(self, handler: Callable[[], None]) -> None:
        handler()

    def resume(self) -> None:
        server = self.server
        assert server is not None
        self._world.schedule(0, server, "resume", self._drain)

    def _drain(self) -> None:
        while self._inbox and self.node_end is not None and self.server_open and not self.node_end.paused:
            header, request = self._inbox.pop(0)
            self.node_end.received(header, request)


def _later(on_result: OnResult, result: Any) -> Callable[[], None]:
    return lambda: on_result(result)


@dataclass(frozen=True, slots=True)
class _Listening:
    process: Process
    name: str
    accept: Callable[[Connection], ServerConnection]


class Network:
    """All hosts, links and connections of a run."""

    def __init__(self, world: World, *, wire: bool = False) -> None:
        self.world = world
        self.wire = wire
        self.random: Random = world.stream("network")
        self.low_us = 150
        self.span_us = 1500
        """The latency of a link that no fault has touched: low to low + span."""
        self._links: dict[tuple[str, str], Link] = {}
        self._listening: dict[Endpoint, _Listening] = {}
        self._hosts: dict[Endpoint, str] = {}
        self._opened: dict[Process, dict[tuple[Endpoint, str], Connection]] = {}
        self._accepted: dict[Process, dict[Connection, None]] = {}

    # hosts

    def listen(
        self, endpoint: Endpoint, process: Process, name: str, accept: Callable[[Connection], ServerConnection]
    ) -> None:
        """From now on `process` answers at `endpoint`, until it ends."""
        self._hosts[endpoint] = process.host.name
        self._listening[endpoint] = _Listening(process, name, accept)

    def stop_listening(self, process: Process) -> None:
        for endpoint, listening in list(self._listening.items()):
            if listening.process is process:
                del self._listening[endpoint]

    def host_of(self, endpoint: Endpoint) -> str:
        """The name of the host; the endpoint's own host name where nobody ever listened."""
        return self._hosts.get(endpoint, endpoint.host)

    def listening(self, endpoint: Endpoint) -> _Listening | None:
        found = self._listening.get(endpoint)
        return found if found is not None and found.process.alive else None

    def link(self, source: str, target: str) -> Link:
        found = self._links.get((source, target))
        if found is None:
            if source == target:
                found = Link(20, 60)
            else:
                found = Link(self.low_us, self.span_us)
            self._links[source, target] = found
        return found

    # sending

    def send(
        self, client: Process, endpoint: Endpoint, channel: str, request: Any, on_result: OnResult, timeout_us: int
    ) -> None:
        opened = self._opened.setdefault(client, {})
        connection = opened.get((endpoint, channel))
        if connection is None:
            connection = opened[endpoint, channel] = Connection(self, client, endpoint, channel)
        connection.submit(request, on_result, timeout_us)

    def put(self, stream: _Stream, item: _Item, connection: Connection) -> None:
        """Send one item down a stream."""
        link = stream.link
        if not item.survives:
            if stream.stalled:
                return
            if link.loss and self.random.random() < link.loss:
                self.world.counters["network.lost"] += 1
                stream.stalled = True
                return
            if link.reset and self.random.random() < link.reset:
                self.reset(connection)
                return
        if link.blocked:
            link.held.append((stream, item))
            return
        self._carry(stream, item, self.world.now_us)

    def _carry(self, stream: _Stream, item: _Item, from_us: int) -> None:
        chance = self.random.random()
        link = stream.link
        # later than the one before by at least the tick that accepting a connection takes: nothing overtakes
        arrives_us = max(stream.clear_at_us + 1, from_us + link.low_us + int(link.span_us * chance * chance * chance))
        stream.clear_at_us = arrives_us
        if stream.cut_us is not None and arrives_us > stream.cut_us and not item.survives:
            return
        if item.survives:
            self.world.schedule_at(arrives_us, item.process, item.label, item.deliver)
        else:
            self.world.schedule_at(arrives_us, item.process, item.label, lambda: self._arrive(stream, item))

    def _arrive(self, stream: _Stream, item: _Item) -> None:
        cut_us = stream.cut_us
        if cut_us is not None and self.world.now_us > cut_us:
            return
        item.deliver()

    # what can go wrong

    def block(self, source: str, target: str) -> None:
        """Nothing passes from `source` to `target` until `heal`; the other direction is not touched."""
        self.link(source, target).blocked = True

    def heal(self, source: str, target: str) -> None:
        link = self.link(source, target)
        if not link.blocked:
            return
        link.blocked = False
        held, link.held = link.held, []
        retry_us = self.world.now_us + self.random.randrange(0, 200_000)
        for stream, item in held:
            self._carry(stream, item, retry_us)

    def reset(self, connection: Connection) -> None:
        """Both ends lose it at once, with what is under way."""
        self.world.counters["network.reset"] += 1
        for stream in (connection.forth, connection.back):
            stream.cut_us = self.world.now_us
        connection.server_gone("reset")
        if connection.server is not None:
            server, node_end = connection.server, connection.node_end
            if node_end is not None:
                self.world.schedule(0, server, "reset", node_end.closed)
        self.world.schedule(0, None, "reset", lambda: connection._client_told("reset"))

    def reset_between(self, one: str, other: str) -> None:
        """Reset every connection between two hosts."""
        for connections in list(self._opened.values()):
            for connection in list(connections.values()):
                hosts = (connection.client.host.name, self.host_of(connection.endpoint))
                if hosts in ((one, other), (other, one)):
                    self.reset(connection)

    def process_ended(self, process: Process) -> None:
        """The kernel closes what the process had open. What a killed one had sent arrives up to a random moment."""
        killed = process.exit is not None and process.exit.kind == "killed"
        self.stop_listening(process)
        for connection in list(self._accepted.pop(process, {})):
            if killed:
                self._cut_somewhere(connection.back)
            connection.server_gone("the server is gone")
        for connection in list(self._opened.pop(process, {}).values()):
            if killed:
                self._cut_somewhere(connection.forth)
            connection.calls.clear()
            connection.close_from_client("the client is gone")

    def _cut_somewhere(self, stream: _Stream) -> None:
        now_us = self.world.now_us
        if stream.clear_at_us > now_us:
            stream.cut_us = now_us + self.random.randrange(0, 2 * (stream.clear_at_us - now_us))

    # books

    def accepted(self, connection: Connection) -> None:
        assert connection.server is not None
        self._accepted.setdefault(connection.server, {})[connection] = None

    def forget_accepted(self, connection: Connection) -> None:
        assert connection.server is not None
        self._accepted.get(connection.server, {}).pop(connection, None)

    def forget(self, connection: Connection) -> None:
        opened = self._opened.get(connection.client)
        key = (connection.endpoint, connection.channel)
        if opened is not None and opened.get(key) is connection:
            del opened[key]

    # messages

    def hand_over_request(self, header: RequestHeader, request: Any) -> Callable[[], Any]:
        """What the far end gets, as a function to call there."""
        if self.wire:
            return passage.request_over_the_wire(header, request)
        return self._unchanged(request, passage.owned_request)

    def hand_over_response(self, header: RequestHeader, response: Any) -> Callable[[], Any]:
        if self.wire:
            return passage.response_over_the_wire(header, response)
        return self._unchanged(passage.resolved_response(response), _as_it_is)

    def _unchanged(self, message: Any, taken: Callable[[Any], Any]) -> Callable[[], Any]:
        if self.random.randrange(0, SAMPLED_MESSAGES):
            return lambda: taken(message)
        before = passage.digest(message)
        self.world.note("-", f"{type(message).__name__} {before:08x}")

        def checked() -> Any:
            if passage.digest(message) != before:
                raise ChangedAfterSend(f"{type(message).__name__} was changed after it was sent: {message!r}")
            return taken(message)

        return checked


def _as_it_is(message: Any) -> Any:
    return message
