"""Ordered connections between hosts, and everything that can go wrong with them.

Each direction is a stream: items arrive in the order in which they were sent, each after a latency of its own. Faults:

    delay, slow link   latencies grow
    loss               the item and all later items of this stream never arrive; the sender notices by its timeout
    partition          one direction between two hosts holds all items until it heals, then delivers them, as TCP
                       retransmits. Closing is held too: the end of a process behind a partition is not noticed
    reset              both ends are notified, items in transit are lost
    kill               the peer is notified. Items that the dead process had sent may still arrive, up to a random
                       moment
    pause              the peer sees silence: the kernel accepts connections and keeps what arrives

Messages are passed as the objects themselves. They must not be changed after sending: a sample is compared at
delivery with its state when it was sent. With `wire=True` every message is encoded and decoded instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from heirlog.broker.transactional_produce import with_own_records
from heirlog.env import OnResult
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import ProduceRequest
from heirlog.protocol.types import Endpoint
from heirlog.sim import message_copies
from heirlog.sim.connection import HandOver, Listening, ServerConnection, SimConnection
from heirlog.sim.link import Item, NetworkLink, Stream
from heirlog.sim.loose_transport import LooseTransport
from heirlog.sim.world import Process, World

SAMPLED_MESSAGES = 41
"""One message in so many is hashed when sent and when delivered. Odd, because requests and answers take turns."""


class ChangedAfterSend(AssertionError):
    """A message was changed after it was sent."""


class Network:
    """All hosts, links and connections of a run."""

    def __init__(self, world: World, *, wire: bool = False) -> None:
        self.world = world
        self.wire = wire
        self.random: Random = world.stream("network")
        self.low_us = 150
        self.span_us = 1500
        """The latency of a link that no fault has touched: low to low + span."""
        self.sent: Counter[type] = Counter()
        """Requests, by their class."""
        self.loose: LooseTransport | None = None
        """Messages may arrive after their connection has closed."""
        self.counts_bytes = False
        """Nodes get the size of each request: client quotas count it."""
        self.answer_delay_us: Callable[[Any], int] | None = None
        """How much later than usual the answer to a request, and what follows it on its connection, arrives."""
        self.answer_listeners: list[Callable[[Process, Any, Any], None]] = []
        """Called as an answer leaves a process, with the request that the client still waits for."""
        self._until_sampled = SAMPLED_MESSAGES
        self._links: dict[tuple[str, str], NetworkLink] = {}
        self._listening: dict[Endpoint, Listening] = {}
        self._hosts: dict[Endpoint, str] = {}
        self._opened: dict[Process, dict[tuple[Endpoint, str], SimConnection]] = {}
        self._accepted: dict[Process, dict[SimConnection, None]] = {}

    # hosts

    def listen(
        self, endpoint: Endpoint, process: Process, name: str, accept: Callable[[SimConnection], ServerConnection]
    ) -> None:
        """From now on `process` answers at `endpoint`, until it ends."""
        self._hosts[endpoint] = process.host.name
        self._listening[endpoint] = Listening(process, name, accept)

    def stop_listening(self, process: Process) -> None:
        for endpoint, listening in list(self._listening.items()):
            if listening.process is process:
                del self._listening[endpoint]

    def host_of(self, endpoint: Endpoint) -> str:
        """The name of the host; the endpoint's own host name if no process ever listened there."""
        return self._hosts.get(endpoint, endpoint.host)

    def listening(self, endpoint: Endpoint) -> Listening | None:
        found = self._listening.get(endpoint)
        return found if found is not None and found.process.alive else None

    def link(self, source: str, target: str) -> NetworkLink:
        found = self._links.get((source, target))
        if found is None:
            if source == target:
                found = NetworkLink(20, 60)
            else:
                found = NetworkLink(self.low_us, self.span_us)
            self._links[source, target] = found
        return found

    # sending

    def send(
        self,
        client: Process,
        endpoint: Endpoint,
        channel: str,
        request: Any,
        on_result: OnResult,
        timeout_us: int,
        newest: int | None = None,
    ) -> None:
        """newest: the newest version to use; None: the newest that there is."""
        self.sent[type(request)] += 1
        try:
            connection = self._opened[client][endpoint, channel]
        except KeyError:
            connection = SimConnection(self, client, endpoint, channel)
            self._opened.setdefault(client, {})[endpoint, channel] = connection
        connection.submit(request, on_result, timeout_us, newest)

    def put(
        self,
        stream: Stream,
        process: Process | None,
        label: str,
        deliver: Callable[[], None],
        connection: SimConnection,
    ) -> None:
        """Send one item down a stream. process: in which `deliver` runs at the far end; None: it finds that itself.

        What arrives after the stream was cut is ignored by `deliver` (`Stream.is_cut`).
        """
        link = stream.link
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
            link.held.append((stream, Item(process, label, deliver)))
            return
        world = self.world
        # `_arrival_us` without the call: half of all events arrive here
        chance = self.random.random()
        arrives_us = world.now_us + link.low_us + int(link.span_us * chance * chance * chance)
        if arrives_us <= stream.clear_at_us:
            arrives_us = stream.clear_at_us + 1
        stream.clear_at_us = arrives_us
        if stream.cut_us is None or arrives_us <= stream.cut_us:
            world.deliver_at(arrives_us, process, label, deliver)

    def put_last(self, stream: Stream, label: str, deliver: Callable[[], None]) -> None:
        """Send the notification that the connection is closed; it arrives even if items of the stream were lost."""
        if stream.link.blocked:
            stream.link.held.append((stream, Item(None, label, deliver, survives=True)))
        else:
            self.world.deliver_at(self._arrival_us(stream, self.world.now_us), None, label, deliver)

    def _arrival_us(self, stream: Stream, from_us: int) -> int:
        chance = self.random.random()
        link = stream.link
        arrives_us = from_us + link.low_us + int(link.span_us * chance * chance * chance)
        if arrives_us <= stream.clear_at_us:
            # later than the one before by at least the tick that accepting a connection takes: nothing overtakes
            arrives_us = stream.clear_at_us + 1
        stream.clear_at_us = arrives_us
        return arrives_us

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
        for stream, (process, label, deliver, survives) in held:
            arrives_us = self._arrival_us(stream, retry_us)
            if survives or stream.cut_us is None or arrives_us <= stream.cut_us:
                self.world.deliver_at(arrives_us, process, label, deliver)

    def reset(self, connection: SimConnection) -> None:
        """Both ends lose the connection at once, with all items in transit."""
        self.world.counters["network.reset"] += 1
        for stream in (connection.forth, connection.back):
            stream.cut_us = self.world.now_us
        connection.server_gone("reset")
        if connection.server is not None:
            server, node_end = connection.server, connection.node_end
            if node_end is not None:
                self.world.schedule(0, server, "reset", node_end.closed)
        self.world.schedule(0, None, "reset", lambda: connection.client_closed("reset"))

    def reset_between(self, one: str, other: str) -> None:
        """Reset every connection between two hosts."""
        for connections in list(self._opened.values()):
            for connection in list(connections.values()):
                hosts = (connection.client.host.name, self.host_of(connection.endpoint))
                if hosts in ((one, other), (other, one)):
                    self.reset(connection)

    def disconnect(self, client: Process, endpoint: Endpoint) -> None:
        """A client closes its connections to an endpoint; what is in progress on them fails later."""
        for connection in list(self._opened.get(client, {}).values()):
            if connection.endpoint == endpoint:
                self.reset(connection)

    def process_ended(self, process: Process) -> None:
        """The kernel closes the connections of the process. Items that a killed process had sent arrive up to a random
        moment.
        """
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

    def _cut_somewhere(self, stream: Stream) -> None:
        now_us = self.world.now_us
        if stream.clear_at_us > now_us:
            stream.cut_us = now_us + self.random.randrange(0, 2 * (stream.clear_at_us - now_us))

    # books

    def accepted(self, connection: SimConnection) -> None:
        assert connection.server is not None
        self._accepted.setdefault(connection.server, {})[connection] = None

    def forget_accepted(self, connection: SimConnection) -> None:
        assert connection.server is not None
        self._accepted.get(connection.server, {}).pop(connection, None)

    def forget(self, connection: SimConnection) -> None:
        opened = self._opened.get(connection.client)
        key = (connection.endpoint, connection.channel)
        if opened is not None and opened.get(key) is connection:
            del opened[key]

    # messages

    def size_of(self, header: RequestHeader, request: Any) -> int:
        """Bytes of the request's frame; 0 where no node counts them."""
        return message_copies.request_bytes(header, request) if self.counts_bytes else 0

    def hand_over_request(self, header: RequestHeader, request: Any) -> HandOver | None:
        """What makes the message that the receiver gets, called there; None: it gets the request itself."""
        if self.wire:
            return message_copies.request_over_the_wire(header, request)
        owned = with_own_records if isinstance(request, ProduceRequest) else None
        self._until_sampled -= 1
        return owned if self._until_sampled else self._unchanged(request, owned)

    def hand_over_response(self, header: RequestHeader, response: Any) -> tuple[Any, HandOver | None]:
        """The response as it leaves, and as of `hand_over_request`."""
        if self.wire:
            return response, message_copies.response_over_the_wire(header, response)
        resolved = message_copies.resolved_response(response)
        self._until_sampled -= 1
        return resolved, None if self._until_sampled else self._unchanged(resolved, None)

    def _unchanged(self, message: Any, taken: HandOver | None) -> HandOver:
        """`taken`, after a check that the message is still as it was sent."""
        self._until_sampled = SAMPLED_MESSAGES
        before = message_copies.digest(message)
        self.world.note("-", f"{type(message).__name__} {before:08x}")

        def checked(message: Any) -> Any:
            if message_copies.digest(message) != before:
                raise ChangedAfterSend(f"{type(message).__name__} was changed after it was sent: {message!r}")
            return message if taken is None else taken(message)

        return checked
