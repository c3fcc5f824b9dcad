"""Connections to one node, whose answers may come later than those to other connections."""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Any

from heirlog.protocol.frames import RequestHeader, decode_response, encode_request

CLOSED = "the connection was closed"
WAITING = "no answer yet"
NO_ANSWER = "no answer, where another node has answered"
ACCEPTED = "accepted without an answer"
PATIENCE_S = 30.0
HOST = "127.0.0.1"


class Connection:
    """One request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None
        self._asked: tuple[int, int] | None = None
        self._data = b""

    @property
    def is_waiting(self) -> bool:
        return self._asked is not None

    def send(self, request: Any, version: int, *, answered: bool = True) -> None:
        if self._socket is None:
            self._socket = socket.create_connection((HOST, self._port), PATIENCE_S)
        header = RequestHeader(request.API_KEY, version, 1, "answers")
        try:
            self._socket.sendall(b"".join(encode_request(header, request)))  # type: ignore[arg-type]
        except ConnectionError:
            pass  # the answer is that there is none
        self._asked = (request.API_KEY, version) if answered else None

    def receive(self, within_s: float) -> Any:
        """The answer, CLOSED or WAITING."""
        assert self._socket is not None and self._asked is not None
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
                self.close()
                return CLOSED
            self._data += piece
        asked, self._asked = self._asked, None
        return decode_response(*asked, memoryview(frame))[1]

    def _frame(self) -> bytes | None:
        if len(self._data) < 4:
            return None
        (size,) = struct.unpack_from(">i", self._data)
        if len(self._data) < 4 + size:
            return None
        frame, self._data = self._data[4 : 4 + size], self._data[4 + size :]
        return frame

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._asked, self._data = None, None, b""


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
