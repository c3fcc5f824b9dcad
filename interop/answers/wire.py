"""Connections to one node, whose answers may come later than those to other connections."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from typing import Any

from heirlog.protocol.frames import RequestHeader, decode_response, encode_request

CLOSED = "the connection was closed"
WAITING = "no answer yet"
NO_ANSWER = "no answer, where another node has answered"
ACCEPTED = "accepted without an answer"
PATIENCE_S = 30.0
HOST = "127.0.0.1"
CLIENT_ID = "answers"


class Connection:
    """Answers come in the order of the requests."""

    def __init__(self, port: int, client_id: str = CLIENT_ID) -> None:
        self._port = port
        self._client_id = client_id
        self._socket: socket.socket | None = None
        self._asked: deque[tuple[int, int]] = deque()
        self._data = b""

    def send(self, request: Any, version: int, *, answered: bool = True) -> None:
        if self._socket is None:
            self._asked.clear()
            self._socket = socket.create_connection((HOST, self._port), PATIENCE_S)
        header = RequestHeader(request.API_KEY, version, 1, self._client_id)
        try:
            self._socket.sendall(b"".join(encode_request(header, request)))  # type: ignore[arg-type]
        except ConnectionError:
            pass  # the answer is that there is none
        if answered:
            self._asked.append((request.API_KEY, version))

    def receive(self, within_s: float) -> Any:
        """The answer to the oldest request without one, CLOSED or WAITING."""
        assert self._asked
        if self._socket is None:
            self._asked.popleft()
            return CLOSED
        deadline = time.monotonic() + within_s
        while (frame := self._frame()) is None:
            remaining_s = deadline - time.monotonic()
            if remaining_s < 0 or not select.select([self._socket], [], [], remaining_s)[0]:
                return WAITING
            try:
                piece = self._socket.recv(1 << 16)
            except ConnectionError:
                piece = b""
            if not piece:
                self._disconnect()
                self._asked.popleft()
                return CLOSED
            self._data += piece
        return decode_response(*self._asked.popleft(), memoryview(frame))[1]

    def _frame(self) -> bytes | None:
        if len(self._data) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._data)
        if len(self._data) < 4 + size:
            return None
        frame, self._data = self._data[4 : 4 + size], self._data[4 + size :]
        return frame

    def close(self) -> None:
        self._disconnect()
        self._asked.clear()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._data = None, b""


class Server:
    """A node, and who is connected to it."""

    def __init__(self, broker_port: int, controller_port: int) -> None:
        self._ports = {False: broker_port, True: controller_port}
        self._connections: dict[Any, Connection] = {}

    def connection(self, client: Any, controller: bool = False) -> Connection:
        return self._connections.setdefault((client, controller), Connection(self._ports[controller]))

    def ask(self, request: Any, version: int | None = None) -> Any:
        """By a client that no sequence has. Raises AssertionError without an answer."""
        connection = self.connection("the judge")
        connection.send(request, request.MAX_VERSION if version is None else version)
        answer = connection.receive(PATIENCE_S)
        assert not isinstance(answer, str), f"{type(request).__name__}: {answer}"
        return answer

    def disconnect(self) -> None:
        for connection in self._connections.values():
            connection.close()
