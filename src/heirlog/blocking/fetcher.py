"""Drives a `PartitionReader` with a socket: one Fetch is on its way while the caller works with the part before.

What the caller gets is in one buffer, which the next answer overwrites. A caller that stops early leaves an answer
behind, so its connection is closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from heirlog.blocking.connection import Connection, ReceiveBuffer
from heirlog.blocking.connections import Connections
from heirlog.client.call import Send
from heirlog.client.errors import OffsetOutOfRange, Unsupported
from heirlog.client.fetching import Fetched
from heirlog.client.partition_reader import PartitionReader
from heirlog.protocol.messages import FetchRequest
from heirlog.protocol.types import Endpoint

ANSWER_TIMEOUT_S = 30.0
"""For all of an answer that has begun."""


class Fetcher:
    """timeout_s: for finding out what a refused offset means."""

    def __init__(self, connections: Connections, reader: PartitionReader, timeout_s: float) -> None:
        self._connections = connections
        self._reader = reader
        self._timeout_s = timeout_s
        self._buffer = ReceiveBuffer()
        self._connection: Connection | None = None
        self._endpoint: Endpoint | None = None

    def parts(self) -> Iterator[Fetched]:
        """Raises OffsetOutOfRange, LogTruncated, TopicRecreated, other KafkaErrors, OSError."""
        try:
            while not self._reader.done:
                part = self._next()
                if part is not None:
                    self._ask_ahead()
                    yield part
                    self._reader.reset_stall_timer()
        except OffsetOutOfRange as error:
            raise self._connections.run(self._reader.explained(error, self._timeout_s)) from error
        finally:
            self._release_connections()

    def _next(self) -> Fetched | None:
        """The next part; None: nothing came, or what came is of no use."""
        if self._connection is None or not self._connection.in_flight:
            send = self._connections.run(self._reader.next_send())
            try:
                self._submit(send)
            except Unsupported:
                raise
            except OSError as error:
                self._lost(error)
                return None
        connection = self._connection
        assert connection is not None
        try:
            wait_s = self._reader.wait_s()
            if not connection.readable(wait_s):
                raise TimeoutError(f"{connection.address} did not answer within {wait_s:.0f} s")
            response = connection.take(into=self._buffer, timeout_s=ANSWER_TIMEOUT_S)
        except OSError as error:
            self._lost(error)
            return None
        return self._reader.answered(response)

    def _submit(self, send: Send) -> None:
        connection = self._connection
        if connection is not None and (send.to != self._endpoint or connection.stale()):
            self._release_connections()
            connection = None
        if connection is None:
            connection = self._connection = self._connections.borrow(send.to, send.timeout_s)
            self._endpoint = send.to
        version = connection.version_of(FetchRequest, send.newest)
        connection.submit(send.message, version=version, timeout_s=ANSWER_TIMEOUT_S)

    def _ask_ahead(self) -> None:
        """The next request is on its way while the caller works."""
        send = self._reader.ahead()
        if send is None:
            return
        try:
            self._submit(send)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._reader.failed(error)

    def _release_connections(self) -> None:
        if self._connection is not None and self._endpoint is not None:
            self._connections.give_back(self._endpoint, self._connection)
            self._connection = None
