"""A client's connection as the brain sees it: answers leave in the order in which requests came.

Kafka clients match answers by order, so a response that is ready early waits for those before it:

    received --> slot --> dispatched --> ready --> sent      (only from the head of the queue)

Traps. A request with acks=0 has no answer: its slot is ready with nothing and is skipped. A `Pending` may complete
within the call that made it or much later, from any other connection's event. When the connection closes, every
`Pending` is abandoned, so that purgatories forget it.

Limits. Apache Kafka reads a connection's next request once the last one is answered. Here producers may pipeline, up to
`QUEUE_LIMIT` per connection: waiting requests are weighted by the memory that they may hold (`_cost`). All connections
together may have `queued.max.requests` additional requests, and `queued.max.request.bytes` of requests in memory;
beyond that each has one at a time, as in Kafka. At a limit the body stops reading, and further bytes stay in the
client's socket. It also stops while the connection is muted, because its client is above a quota (`client_quotas.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from heirlog.context import ANONYMOUS, CLOSE, NO_ANSWER, Context, Reply, Sentinel
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.node import wire
from heirlog.pending import Pending
from heirlog.protocol.frames import RequestHeader
from heirlog.security.distinguished_name import UnusableName, subject_of
from heirlog.security.exchange import NOBODY_ELSE

if TYPE_CHECKING:
    from heirlog.env import Cancel, Env
    from heirlog.node.authentication import Authentications
    from heirlog.node.client_quotas import Charge, ClientQuotaManager
    from heirlog.node.request_metrics import ApiRequestMetrics, RequestMetrics
    from heirlog.node.router import ListenerRoutes

QUEUE_LIMIT = 100
"""The cost of a connection's unanswered requests at which the body stops reading from it, until half is answered."""
LARGE_ANSWER_COST = 50
"""Cost of a large answer: otherwise a client could cause a hundred of them while the first one waits."""
BYTES_PER_COST = 32 * 1024
NOT_READY: Final = Sentinel("NOT_READY")


class Transport(Protocol):
    """The body's end of one accepted connection."""

    @property
    def peer_host(self) -> str: ...

    @property
    def listener(self) -> str:
        """Name of the listener that accepted it."""

    def send(self, header: RequestHeader, response: Any) -> None: ...

    def send_token(self, token: bytes) -> None:
        """A frame without a header: how SASL tokens were sent before KIP-152."""

    def authenticated(self) -> None:
        """The client has proved who it is: the limits for unauthenticated clients no longer apply to it."""

    def random_bytes(self, count: int) -> bytes:
        """Unpredictable, except in a simulation."""

    def close(self) -> None: ...

    def pause(self) -> None:
        """Read nothing more until `resume`. Within `received_frame`, `paused` says the same."""

    def resume(self) -> None:
        """The queue has room again, or the client has waited: continue reading."""

    def run(self, handler: Callable[[], None]) -> None:
        """Run the handler of an earlier request as if it came now: an exception closes only this connection."""


class ReadAhead:
    """What waits over all connections of a node: requests beyond one per connection, and bytes of all requests.

    limit: `queued.max.requests`. bytes_limit: `queued.max.request.bytes`; not positive: none.
    """

    __slots__ = ("bytes", "bytes_limit", "count", "limit")

    def __init__(self, limit: int, bytes_limit: int = -1) -> None:
        self.limit = limit
        self.bytes_limit = bytes_limit
        self.count = 0
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        return self.count >= self.limit or 0 < self.bytes_limit <= self.bytes


class RequestHandler(Protocol):
    """What a connection uses of its node."""

    @property
    def read_ahead(self) -> ReadAhead: ...

    @property
    def requests(self) -> RequestMetrics | None: ...

    @property
    def holds_requests(self) -> bool: ...

    @property
    def client_quotas(self) -> ClientQuotaManager | None:
        """None: no client has a quota."""

    @property
    def env(self) -> Env: ...

    def handle(self, listener: ListenerRoutes, header: RequestHeader, request: Any, context: Context) -> Reply[Any]: ...

    def refused_frame(self, connection: ClientConnection, reason: str) -> None: ...

    def read_failed(self, path: str, error: OSError) -> None: ...

    @property
    def authentications(self) -> Authentications: ...

    def disconnected(self, connection: ClientConnection) -> None: ...


def principal_of(security: ListenerSecurity, certificate: bytes | None) -> str:
    """Whom a client's certificate names on a listener with TLS. Raises UnusableName."""
    if certificate is None or security.mapper is None:
        return ANONYMOUS
    subject = subject_of(certificate)
    name = security.mapper.name_of(subject)
    if name is None:
        raise UnusableName("no rule of ssl.principal.mapping.rules matches the subject of its certificate")
    if not name or name in NOBODY_ELSE:
        raise UnusableName(f"ssl.principal.mapping.rules makes {name!r} of the subject of its certificate")
    return f"User:{name}"


class _Slot:
    __slots__ = (
        "api",
        "begun_ns",
        "charge",
        "cost",
        "handled_ns",
        "header",
        "held_bytes",
        "is_timed",
        "pending",
        "ready_ns",
        "response",
    )

    def __init__(self, header: RequestHeader, cost: int, held_bytes: int) -> None:
        self.header = header
        self.cost = cost
        self.held_bytes = held_bytes
        self.charge: Charge | None = None
        self.api: ApiRequestMetrics | None = None
        """None: not measured, and then the times below are not there; nor are the last two unless it `is_timed`."""
        self.is_timed = False
        self.begun_ns: int
        self.handled_ns: int
        self.ready_ns: int
        self.pending: Pending[Any] | None = None
        self.response: Any = NOT_READY

    def measure(self, api: ApiRequestMetrics, begun_ns: int) -> None:
        """Its handler has just returned."""
        self.api = api
        self.begun_ns = begun_ns
        self.is_timed = api.is_timed()
        if self.is_timed:
            self.handled_ns = self.ready_ns = api.now_ns()


class ClientConnection:
    """Made by `Node.connected`; lives until `closed`."""

    __slots__ = (
        "_ahead",
        "_cancel_unmute",
        "_closed",
        "_cost",
        "_decoder",
        "_is_muted",
        "_muted_until_ms",
        "_node",
        "_on_closed",
        "_queue",
        "_repeated",
        "_request_metrics",
        "by_delegation_token",
        "listener",
        "paused",
        "principal",
        "transport",
    )

    def __init__(self, node: RequestHandler, listener: ListenerRoutes, transport: Transport) -> None:
        self._node = node
        self.listener = listener
        self.transport = transport
        self._queue: deque[_Slot] = deque()
        self._cost = 0
        self._ahead = node.read_ahead
        self._request_metrics = node.requests
        self._decoder = wire.FrameDecoder(listener)
        self._repeated: wire.RepeatedRequest | None = None
        self.paused = False
        """The body reads nothing more for now."""
        self._is_muted = False
        self._muted_until_ms = 0
        self._cancel_unmute: Cancel | None = None
        self._closed = False
        self.principal = ANONYMOUS
        """Who the client has proved to be (`secured`, `sasl_connection.py`)."""
        self.by_delegation_token = False
        self._on_closed: Callable[[], None] | None = None

    def secured(self, certificate: bytes | None) -> None:
        """The body: on a listener with TLS the client has shown this certificate, in DER, or none."""
        try:
            self.principal = principal_of(self.listener.security, certificate)
        except UnusableName as error:
            self.authentication_failed("TLS", "", str(error))
            self.transport.close()
            return
        self.transport.authenticated()
        self.authenticated("TLS")

    def authenticated(self, mechanism: str) -> None:
        self._node.authentications.has_succeeded(
            self.listener.name, self.transport.peer_host, mechanism, self.principal
        )

    def authentication_failed(self, mechanism: str, name: str, why: str) -> None:
        self._node.authentications.has_failed(self.listener.name, self.transport.peer_host, mechanism, name, why)

    def when_closed(self, fn: Callable[[], None]) -> None:
        """Call `fn` once the connection is gone (a broker's heartbeats: "broker session"). The last `fn` counts."""
        self._on_closed = fn

    def received_frame(self, frame: memoryview) -> None:
        """One frame without its length prefix; owned by the receiver. Undecodable: answered or closed."""
        meter = self._request_metrics
        begun_ns = 0 if meter is None else meter.now_ns()
        repeated = self._repeated
        if repeated is not None and (known := repeated.header_in(frame)) is not None:
            self.received(known, repeated.request, len(frame), begun_ns)
            return
        decoded = self._decoder.decode(frame)
        if isinstance(decoded, wire.RefusedFrame):
            if decoded.response is not None and decoded.header is not None:
                self.answer_in_order(decoded.header, decoded.response)
            else:
                self._node.refused_frame(self, decoded.reason)
                self.transport.close()
            return
        header, request = decoded
        if self.listener.routes[header.api_key].is_repeated and len(frame) <= wire.REPEATED_BYTES_MAX:
            self._repeated = wire.RepeatedRequest(header, request, frame)
        self.received(header, request, len(frame), begun_ns)

    def received(self, header: RequestHeader, request: Any, size: int = 0, begun_ns: int = 0) -> None:
        """`size`: of its frame in bytes, as far as the body knows. `begun_ns`: when it came; 0: now."""
        api: ApiRequestMetrics | None = None
        if self._request_metrics is not None:
            api = self._request_metrics.received(header.api_key, header.api_version, request)
            begun_ns = begun_ns or self._request_metrics.now_ns()
        context = Context(
            header.api_version,
            header.client_id or "",
            self.transport.peer_host,
            self.listener.name,
            self,
            self.principal,
            self.by_delegation_token,
        )
        quotas = self._node.client_quotas
        charge = None if quotas is None else self._charge(quotas, header, request, size)
        if charge is not None:
            request = charge.cut(request)
        answer = self._node.handle(self.listener, header, request, context)
        if answer is CLOSE:
            self.transport.close()
            return
        if not self._queue and not isinstance(answer, Pending) and charge is None:
            if api is not None:
                self._answer_measured(header, answer, api, begun_ns)
            elif answer is not NO_ANSWER:
                self.transport.send(header, answer)
            return
        slot = self._enqueue(header, size)
        if charge is not None:
            charge.handled()
            slot.charge = charge
        if api is not None:
            slot.measure(api, begun_ns)
        if isinstance(answer, Pending):
            slot.pending = answer
            answer.then(partial(self._ready_now, slot))
        else:
            self._ready(slot, answer)

    def _answer_measured(self, header: RequestHeader, answer: Any, api: ApiRequestMetrics, begun_ns: int) -> None:
        if answer is NO_ANSWER:
            api.done_without_answer(begun_ns)
            return
        # `api.is_timed()` and `api.answered(answer)` written out: calls are most of what counting a request takes
        api.until_timed -= 1
        if api.until_timed:
            self.transport.send(header, answer)
        else:
            api.choose_next()
            handled_ns = api.now_ns()
            self.transport.send(header, answer)
            api.record_times(begun_ns, handled_ns, handled_ns, handled_ns)
        api.done += 1
        api.count_errors(answer, api.errors)

    def _charge(self, quotas: ClientQuotaManager, header: RequestHeader, request: Any, size: int) -> Charge | None:
        route = self.listener.routes.get(header.api_key)
        is_of_nodes = route is None or route.has_no_quota
        return quotas.charge(self.principal, self.transport.peer_host, header, request, size, is_of_nodes)

    def answer_in_order(self, header: RequestHeader, response: Any) -> None:
        """Send `response`, or CLOSE the connection, after the answers to all requests before."""
        if self._queue:
            self._ready(self._enqueue(header, 0), response)
        elif response is CLOSE:
            self.transport.close()
        else:
            self.transport.send(header, response)

    def _enqueue(self, header: RequestHeader, size: int) -> _Slot:
        route = self.listener.routes[header.api_key]
        if route.keeps_nothing and not self._node.holds_requests:
            slot = _Slot(header, 1, 0)
        else:
            slot = _Slot(header, (LARGE_ANSWER_COST if route.has_large_answer else 1) + size // BYTES_PER_COST, size)
        ahead = self._ahead
        if self._queue:
            ahead.count += 1
        self._queue.append(slot)
        self._cost += slot.cost
        ahead.bytes += slot.held_bytes
        if self._cost >= QUEUE_LIMIT or ahead.is_full:
            self.paused = True
        return slot

    def _dequeue(self) -> _Slot:
        slot = self._queue.popleft()
        self._cost -= slot.cost
        ahead = self._ahead
        ahead.bytes -= slot.held_bytes
        if self._queue:
            ahead.count -= 1
        return slot

    def _ready_now(self, slot: _Slot, response: Any) -> None:
        """The answer of a request that had to wait."""
        if slot.is_timed and slot.api is not None:
            slot.ready_ns = slot.api.now_ns()
        self._ready(slot, response)

    def _ready(self, slot: _Slot, response: Any) -> None:
        slot.response = response
        queue = self._queue
        while queue and queue[0].response is not NOT_READY and not self._closed:
            head = self._dequeue()
            if head.response is CLOSE:
                self.transport.close()
                return
            if head.charge is None:
                self._send(head, waited=head is not slot)
            else:
                self._send_charged(head, head.charge, waited=head is not slot)
        if self.paused and not self._closed and self._has_room():
            self.paused = False
            self.transport.resume()

    def _send(self, head: _Slot, waited: bool) -> None:
        """`waited`: its answer was ready before those of earlier requests."""
        api, response = head.api, head.response
        if response is NO_ANSWER:
            if api is not None:
                api.done_without_answer(head.begun_ns)
            return
        if api is None or not head.is_timed:
            self.transport.send(head.header, response)
            if api is not None:
                api.answered(response)
            return
        taken_ns = api.now_ns() if waited else head.ready_ns
        self.transport.send(head.header, response)
        api.answered(response)
        api.record_times(head.begun_ns, head.handled_ns, head.ready_ns, taken_ns)

    def _send_charged(self, head: _Slot, charge: Charge, waited: bool) -> None:
        """The answer leaves at once, and then nothing is read for as long as the client has to wait."""
        wants_answer = head.response is not NO_ANSWER
        response, throttle_ms = charge.settle(head.response if wants_answer else None)
        if wants_answer:
            head.response = response
        self._send(head, waited)
        charge.sent()
        if throttle_ms > 0:
            self._mute(throttle_ms, charge.adds_up)
            if head.api is not None and head.is_timed:
                head.api.record_throttle(throttle_ms)

    def _mute(self, throttle_ms: int, adds_up: bool) -> None:
        """Requests that came before it may be answered meanwhile, and make it longer."""
        env = self._node.env
        now_ms = env.now_ms()
        begin_ms = max(now_ms, self._muted_until_ms) if adds_up else now_ms
        self._muted_until_ms = max(self._muted_until_ms, begin_ms + throttle_ms)
        if not self._is_muted:
            self.paused = self._is_muted = True
            self.transport.pause()
            self._cancel_unmute = env.call_later(throttle_ms, self._unmute)

    def _unmute(self) -> None:
        env = self._node.env
        left_ms = self._muted_until_ms - env.now_ms()
        if left_ms > 0:
            self._cancel_unmute = env.call_later(left_ms, self._unmute)
            return
        self._is_muted = False
        if self._has_room():
            self.paused = False
            self.transport.resume()

    def _has_room(self) -> bool:
        if self._is_muted:
            return False
        if not self._queue:
            return True
        return self._cost <= QUEUE_LIMIT // 2 and not self._ahead.is_full

    def read_failed(self, path: str, error: OSError) -> None:
        """The body: a region of an answer could not be read; the connection ends. Not within a call of `send`."""
        self._node.read_failed(path, error)

    def closed(self) -> None:
        """The body: this connection is gone (either side closed it, or it was reset). Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._cancel_unmute is not None:
            # it may be days away, and holds this connection
            self._cancel_unmute()
        while self._queue:
            slot = self._dequeue()
            if slot.pending is not None and slot.response is NOT_READY:
                slot.pending.abandon()
        if self._on_closed is not None:
            self._on_closed()
        self._node.disconnected(self)
