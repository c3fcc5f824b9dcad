"""One connection to a node, byte by byte: requests and answers of the protocol, logins, or bare bytes."""

from __future__ import annotations

import socket
import struct
from typing import Any

from heirlog.protocol.api import response_class
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION
from heirlog.testing import Cluster


class Talk:
    def __init__(self, cluster: Cluster) -> None:
        host, _, port = cluster.bootstrap_servers.partition(",")[0].partition(":")
        self.sock = socket.create_connection((host, int(port)), timeout=20)
        self.sent = 0

    def send(self, request: Any, version: int) -> None:
        self.sent += 1
        parts = encode_request(RequestHeader(request.API_KEY, version, self.sent, "talk"), request)
        self.sock.sendall(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]

    def answer(self, request: type[Any], version: int) -> Any:
        frame = self.frame()
        assert frame is not None, "closed instead of an answer"
        assert response_class(request.API_KEY)
        return decode_response(request.API_KEY, version, memoryview(frame))[1]

    def ask(self, request: Any, version: int) -> Any:
        self.send(request, version)
        return self.answer(type(request), version)

    def frame(self) -> bytes | None:
        """None: the connection was closed."""
        head = self.receive(4)
        return None if head is None else self.receive(struct.unpack(">i", head)[0])

    def receive(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not more:
                return None
            data += more
        return data

    def is_closed(self) -> bool:
        return self.frame() is None

    # usual steps

    def versions(self, version: int = 4) -> Any:
        asked = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        return self.ask(asked, version)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.ask(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version)

    def log_in(self, token: bytes, mechanism: str = "PLAIN") -> Any:
        assert self.handshake(mechanism).error_code == 0
        answer = self.token(token)
        assert answer.error_code == 0, answer
        return answer

    def metadata(self) -> Any:
        return self.ask(MetadataRequest(topics=[]), 12)
