"""SaslAuthenticate where it is out of place. With SASL: `tests/processes/test_sasl.py`."""

from __future__ import annotations

import pytest
from apis.guarded import CONTROLLER, Guarded

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, encode_request
from heirlog.protocol.messages import SaslAuthenticateRequest


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_listener_without_sasl_takes_no_token(node: Guarded, version: int, listener: str) -> None:
    answer = node.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), version, listener=listener)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert "secret" not in answer.error_message


def test_the_connection_lives_on(node: Guarded) -> None:
    wire, connection = node.connect()
    request = SaslAuthenticateRequest(auth_bytes=b"x")
    frame = b"".join(encode_request(RequestHeader(request.API_KEY, 1, 1, "x"), request))[4:]
    for _ in range(2):
        connection.received_frame(memoryview(bytearray(frame)))
    assert len(wire.answers) == 2 and not wire.closed
    connection.closed()
