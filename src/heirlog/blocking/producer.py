"""Drives a `Sender` with sockets: several Produce requests on their way to each leader, answers taken meanwhile.

What goes into which request, and what is sent again, is decided in `client/sender.py`. Nothing runs in the background:
the work is done in `send` and `flush`. A connection on which an answer is late is closed, and all requests on it fail.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from heirlog.blocking.connection import Connection, readable_of
from heirlog.blocking.connections import SETUP_TIMEOUT_S, Connections
from heirlog.client.sender import NO_ACKS, RETRY_PAUSE_S, Delivered, Request, Sender
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.messages import ProduceRequest, ProduceResponse
from heirlog.protocol.types import Endpoint

POLL_S = 0.05


@dataclass(slots=True)
class LeaderConnection:
    """The connection to one leader, and the requests on it."""

    connection: Connection
    requests: deque[tuple[Request, float]] = field(default_factory=deque)
    """Each with the time at which it fails."""


class BatchProducer:
    """A producer of whole record batches; `Client.producer` creates it. The normal end of a `with` block flushes.

    buffer_bytes: `send` waits while more bytes than this are unacknowledged.
    """

    def __init__(
        self,
        connections: Connections,
        sender: Sender,
        buffer_bytes: int,
        on_delivered: Callable[[Delivered], None] = lambda delivered: None,
    ) -> None:
        self._connections = connections
        self._sender = sender
        self._accumulator = sender.accumulator
        self._buffer_bytes = buffer_bytes
        self._leaders: dict[Endpoint, LeaderConnection] = {}
        self._on_delivered = on_delivered
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._release_connections()

    def send(self, topic: str, partition: int, batch: bytearray) -> None:
        """Queue one record batch. Raises the first failure of any batch; InvalidBatch if `batch` is not a batch."""
        self._raise_failure()
        if self._closed:
            raise ValueError("the producer is closed")
        self._sender.add(topic, partition, batch)
        self._step(0)
        while self._accumulator.bytes > self._buffer_bytes:
            self._step(POLL_S)

    def poll(self, wait_s: float) -> None:
        """Take acknowledgements; wait up to `wait_s` for one. Raises the first failure of any batch."""
        self._step(wait_s)

    def flush(self) -> None:
        """Wait until everything is acknowledged. Raises the first failure of any batch."""
        self._raise_failure()
        while not self._accumulator.empty:
            self._step(POLL_S)

    def close(self) -> None:
        """Flush, and return the connections to the client."""
        try:
            self.flush()
        finally:
            self._release_connections()

    # one round of work

    def _step(self, wait_s: float) -> None:
        """Send what can be sent, take the answers that are there; wait for one up to `wait_s` if there is none."""
        self._take_answers(0)
        preparation = self._sender.prepare()
        if preparation is not None:
            self._connections.run(preparation)
        sent = False
        while requests := self._sender.requests(everything=wait_s > 0):
            sent = True
            for request in requests:
                self._send(request)
        if wait_s and not sent:
            self._take_answers(wait_s)
        self._sender.expire()
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._accumulator.failure is not None:
            self._release_connections()
            raise self._meaning(self._accumulator.failure)

    def _meaning(self, failure: Exception) -> Exception:
        """What to raise for it."""
        return failure

    def _release_connections(self) -> None:
        self._closed = True
        for endpoint, leader in self._leaders.items():
            self._connections.give_back(endpoint, leader.connection)
        self._leaders.clear()

    # requests

    def _send(self, request: Request) -> None:
        send = request.send
        try:
            leader = self._leader(send.to)
            version = leader.connection.version_of(ProduceRequest, send.newest)
        except OSError as error:
            self._sender.failed(request, error)
            return
        except KafkaError as error:
            self._accumulator.fail(error)
            return
        leader.requests.append((request, time.monotonic() + send.timeout_s))
        try:
            if self._sender.acks == NO_ACKS:
                leader.connection.send(send.message, version=version, timeout_s=send.timeout_s)
                leader.requests.pop()
                self._sender.sent(request)
            else:
                leader.connection.submit(send.message, version=version, timeout_s=send.timeout_s)
        except OSError as error:
            self._connection_failed(send.to, error)

    def _leader(self, endpoint: Endpoint) -> LeaderConnection:
        leader = self._leaders.get(endpoint)
        if leader is not None and not leader.requests and leader.connection.stale():
            leader.connection.close()
            leader = None
        if leader is None:
            leader = self._leaders[endpoint] = LeaderConnection(self._connections.borrow(endpoint, SETUP_TIMEOUT_S))
        return leader

    def _connection_failed(self, endpoint: Endpoint, error: OSError) -> None:
        """No answer will come to what was sent on this connection."""
        leader = self._leaders.pop(endpoint)
        leader.connection.close()
        for request, _ in leader.requests:
            self._sender.failed(request, error)

    # answers

    def _take_answers(self, wait_s: float) -> None:
        """Every answer that is there; waits up to `wait_s` for the first one."""
        waiting = {leader.connection: endpoint for endpoint, leader in self._leaders.items() if leader.requests}
        ready = [connection for connection in waiting if connection.readable()]
        if not ready and wait_s:
            ready = self._wait(list(waiting), wait_s)
        for connection in ready:
            self._take_answers_of(waiting[connection])
        now_s = time.monotonic()
        for endpoint, leader in list(self._leaders.items()):
            if leader.requests and now_s >= leader.requests[0][1]:
                waited_s = leader.requests[0][0].send.timeout_s
                self._connection_failed(endpoint, TimeoutError(f"{endpoint} did not answer within {waited_s:g} s"))

    def _take_answers_of(self, endpoint: Endpoint) -> None:
        leader = self._leaders[endpoint]
        while leader.requests and leader.connection.readable():
            request, _ = leader.requests[0]
            try:
                response: ProduceResponse = leader.connection.take(timeout_s=request.send.timeout_s)
            except OSError as error:
                self._connection_failed(endpoint, error)
                return
            leader.requests.popleft()
            for delivered in self._sender.answered(request, response):
                self._on_delivered(delivered)

    def _wait(self, connections: list[Connection], wait_s: float) -> list[Connection]:
        if not connections:
            time.sleep(min(wait_s, RETRY_PAUSE_S))  # for a retry's time to come
            return []
        return readable_of(connections, wait_s)
