"""A client's connection as the brain sees it: answers leave in the order in which requests came.

Kafka clients match answers by order, so a response that is ready early waits for those before it:

    received --> slot --> dispatched --> ready --> sent      (only from the head of the queue)

Traps. A request with acks=0 has no answer: its slot is ready with nothing and is skipped. A `Pending` may complete
within the call that made it or much later, from any other connection's event. When the connection closes, every
`Pending` is abandoned, so that purgatories forget it. The queue is bounded: at its limit the body stops reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from heirlog.context import CLOSE, NO_ANSWER, Context
from heirlog.node import wire
from heirlog.pending import Pending
from heirlog.protocol.frames import RequestHeader

if TYPE_CHECKING:
    from heirlog.node.node import Node
    from heirlog.node.router import Listener

MAX_QUEUED_REQUESTS = 100
"""Unanswered requests per connection before the body stops reading from it."""


class Transport(Protocol):
    """The body's end of one accepted connection."""

    @property
    def peer_host(self) -> str: ...

    @property
    def listener(self) -> str:
        """Name of the listener that accepted it."""

    def send(self, header: RequestHeader, response: Any) -> None: ...

    def close(self) -> None: ...

    def resume(self) -> None:
        """The queue has room again: read on."""

    def run(self, handler: Callable[[], None]) -> None:
        """Run a handler whose request came earlier as if it came now: an exception closes this connection only."""


class _Slot:
    __slots__ = ("header", "pending", "ready", "response")

    def __init__(self, header: RequestHeader) -> None:
        self.header = header
        self.pending: Pending[Any] | None = None
        self.response: Any = None
        self.ready = False


class ClientConnection:
    """Made by `Node.connected`; lives until `closed`."""

    __slots__ = ("_closed", "_node", "_paused", "_queue", "listener", "on_closed", "transport")

    def __init__(self, node: Node, listener: Listener, transport: Transport) -> None:
        self._node = node
        self.listener = listener
        self.transport = transport
        self._queue: deque[_Slot] = deque()
        self._paused = False
        self._closed = False
        self.on_closed: Callable[[], None] | None = None
        """Set by a handler that must know (a broker's heartbeats: "broker session")."""

    @property
    def paused(self) -> bool:
        return self._paused

    def received_frame(self, frame: memoryview) -> None:
        """One frame without its length prefix; owned by the receiver. Undecodable: answered or closed."""
        decoded = wire.decode(self.listener, frame)
        if isinstance(decoded, wire.Refused):
            if decoded.response is not None and decoded.header is not None:
                self._answer_now(decoded.header, decoded.response)
            else:
                self._node.refused_frame(self, decoded.reason)
                self.transport.close()
            return
        self.received(*decoded)

    def received(self, header: RequestHeader, request: Any) -> None:
        context = Context(
            header.api_version, header.client_id or "", self.transport.peer_host, self.listener.name, self
        )
        answer = self._node.handle(self.listener, header, request, context)
        if answer is CLOSE:
            self.transport.close()
            return
        if not self._queue and not isinstance(answer, Pending):
            if answer is not NO_ANSWER:
                self.transport.send(header, answer)
            return
        slot = _Slot(header)
        self._queue.append(slot)
        if len(self._queue) >= MAX_QUEUED_REQUESTS:
            self._paused = True
        if isinstance(answer, Pending):
            slot.pending = answer
            answer.then(lambda response: self._ready(slot, response))
        else:
            self._ready(slot, answer)

    def _answer_now(self, header: RequestHeader, response: Any) -> None:
        if not self._queue:
            self.transport.send(header, response)
            return
        slot = _Slot(header)
        self._queue.append(slot)
        self._ready(slot, response)

    def _ready(self, slot: _Slot, response: Any) -> None:
        slot.response = response
        slot.ready = True
        queue = self._queue
        while queue and queue[0].ready and not self._closed:
            head = queue.popleft()
            if head.response is CLOSE:
                self.transport.close()
                return
            if head.response is not NO_ANSWER:
                self.transport.send(head.header, head.response)
        if self._paused and len(queue) < MAX_QUEUED_REQUESTS // 2 and not self._closed:
            self._paused = False
            self.transport.resume()

    def read_failed(self, path: str, error: OSError) -> None:
        """The body: a region of an answer could not be read; the connection ends. Not within a call of `send`."""
        self._node.read_failed(path, error)

    def closed(self) -> None:
        """The body: this connection is gone (either side closed it, or it was reset). Idempotent."""
        if self._closed:
            return
        self._closed = True
        while self._queue:
            slot = self._queue.popleft()
            if slot.pending is not None and not slot.ready:
                slot.pending.abandon()
        if self.on_closed is not None:
            self.on_closed()
        self._node.disconnected(self)
