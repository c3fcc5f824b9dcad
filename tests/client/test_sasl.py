"""SASL mechanisms against the examples of their RFCs, and against servers that cheat."""

from __future__ import annotations

import pytest

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.handshake import Authentication
from heirlog.client.sasl import OAuthBearer, Plain, Scram
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

RANGES = {17: (0, 1), 36: (0, 2)}
# RFC 7677, section 3
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")


def test_plain_is_name_and_password_between_zero_bytes() -> None:
    mechanism = Plain("älice", "secret")
    assert mechanism.first() == b"\0\xc3\xa4lice\0secret"
    assert mechanism.answer(b"") is None


def test_scram_is_that_of_the_rfc() -> None:
    mechanism = scram()
    assert mechanism.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert mechanism.answer(SERVER_FIRST) == CLIENT_FINAL
    assert mechanism.answer(SERVER_FINAL) is None


def test_a_name_with_comma_and_equals_sign_is_escaped_and_a_delegation_token_says_so() -> None:
    mechanism = Scram("SCRAM-SHA-512", "a=b,c", "x", "n", delegation_token=True)
    assert mechanism.first() == b"n,,n=a=3Db=2Cc,r=n,tokenauth=true"


@pytest.mark.parametrize(
    ("server_first", "complaint"),
    [
        (b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=99999999", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=" + 5000 * b"4", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=many", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=,i=4096", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=%%%%,i=4096", "iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=abc,i=4096", "base64"),
        (b"e=unknown-user", "unknown-user"),
        (b"\xff", "UTF-8"),
        (b"", "nonce"),
    ],
)
def test_a_server_message_that_is_not_safe_ends_the_exchange(server_first: bytes, complaint: str) -> None:
    with pytest.raises(AuthenticationFailed, match=complaint):
        scram().answer(server_first)


@pytest.mark.parametrize("final", [b"v=AAAATRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", b"", b"x=1"])
def test_a_server_that_does_not_know_the_password_is_not_believed(final: bytes) -> None:
    mechanism = scram()
    mechanism.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="signature"):
        mechanism.answer(final)


def test_a_server_that_refuses_the_proof_is_quoted() -> None:
    mechanism = scram()
    mechanism.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="invalid-proof"):
        mechanism.answer(b"e=invalid-proof")


def test_a_bearer_token_goes_out_with_its_extensions() -> None:
    mechanism = OAuthBearer(lambda: "abc", {"traceId": "7"})
    assert mechanism.first() == b"n,,\x01auth=Bearer abc\x01traceId=7\x01\x01"
    assert mechanism.answer(b"") is None


def test_a_refused_token_is_answered_once_so_that_the_server_can_end_the_exchange() -> None:
    mechanism = OAuthBearer(lambda: "abc")
    mechanism.first()
    assert mechanism.answer(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        mechanism.answer(b"again")


def test_authentication_goes_from_handshake_to_the_last_word_of_the_mechanism() -> None:
    exchange = Authentication("SCRAM-SHA-256", scram(), RANGES)
    assert exchange.first() == SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    said = exchange.answered(SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
    assert said == SaslAuthenticateRequest(auth_bytes=b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    said = exchange.answered(SaslAuthenticateResponse(auth_bytes=SERVER_FIRST))
    assert said == SaslAuthenticateRequest(auth_bytes=CLIENT_FINAL)
    assert exchange.answered(SaslAuthenticateResponse(auth_bytes=SERVER_FINAL, session_lifetime_ms=5)) is None
    assert exchange.session_lifetime_ms == 5


def test_a_broker_that_lacks_the_mechanism_names_its_own() -> None:
    exchange = Authentication("PLAIN", Plain("a", "b"), RANGES)
    exchange.first()
    with pytest.raises(AuthenticationFailed, match="it offers GSSAPI, SCRAM-SHA-512") as failed:
        exchange.answered(SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512", "GSSAPI"]))
    assert failed.value.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_a_wrong_password_is_reported_in_the_brokers_words_without_the_password() -> None:
    exchange = Authentication("PLAIN", Plain("alice", "hunter2"), RANGES)
    exchange.answered(SaslHandshakeResponse())
    with pytest.raises(AuthenticationFailed, match="Invalid username or password") as failed:
        exchange.answered(SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password"))
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize("ranges", [{}, {17: (0, 0), 36: (0, 2)}, {17: (0, 1)}])
def test_a_broker_without_sasl_is_told_apart_from_a_wrong_password(ranges: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(AuthenticationFailed, match="does not support SASL") as failed:
        Authentication("PLAIN", Plain("a", "b"), ranges).first()
    assert failed.value.code is ErrorCode.ILLEGAL_SASL_STATE
