"""OAUTHBEARER from the server's side, message by message."""

from __future__ import annotations

import pytest

from heirlog.client.sasl import OAuthBearer
from heirlog.security.access_token import AccessToken, RefusedToken
from heirlog.security.exchange import Accepted, Challenge, Refused
from heirlog.security.oauthbearer import OAuthBearerExchange

ENDS = 5_000


class Known:
    """A token is its own name; `bad` and `weak` are refused."""

    def validate(self, token: str) -> AccessToken:
        if token == "bad":
            raise RefusedToken("it expired 7 seconds ago", said_name="alice")
        if token == "weak":
            raise RefusedToken("its scope lacks b", "[a, b]")
        return AccessToken(token, ENDS)


def exchange() -> OAuthBearerExchange:
    return OAuthBearerExchange(Known())


def message(token: str, asked_for: str = "", *pairs: str) -> bytes:
    return f"n,{asked_for},\x01auth=Bearer {token}\x01{''.join(pair + chr(1) for pair in pairs)}\x01".encode()


def test_a_token_lets_its_bearer_in_until_it_ends() -> None:
    assert exchange().respond(message("alice")) == Accepted("alice", ends_at_ms=ENDS)
    assert exchange().respond(OAuthBearer(lambda: "alice", {"traceId": "1"}).first()) == Accepted(
        "alice", ends_at_ms=ENDS
    )
    assert exchange().respond(b"n,,\x01auth=bEARER  a.b_c-~+/==\x01\x01") == Accepted("a.b_c-~+/==", ends_at_ms=ENDS)
    assert exchange().respond(message("alice", "a=alice", "a=1 2\t", "b=~")) == Accepted("alice", ends_at_ms=ENDS)


@pytest.mark.parametrize(
    ("token", "status"),
    [("bad", b'{"status":"invalid_token"}'), ("weak", b'{"status":"insufficient_scope","scope":"[a, b]"}')],
)
def test_a_refusal_is_json_first_and_an_error_after_the_clients_byte(token: str, status: bytes) -> None:
    attempt = exchange()
    assert attempt.respond(message(token)) == Challenge(status)
    with pytest.raises(Refused) as refused:
        attempt.respond(b"\x01")
    assert refused.value.sentence == status.decode()
    assert refused.value.why.startswith("the token is refused: it")
    with pytest.raises(Refused):
        attempt.respond(message("alice"))


def test_the_client_does_not_learn_why_and_the_log_does() -> None:
    attempt = exchange()
    attempt.respond(message("bad"))
    with pytest.raises(Refused) as refused:
        attempt.respond(b"\x01")
    assert "expired" in refused.value.why and "expired" not in refused.value.sentence
    assert refused.value.said_name == "alice"


@pytest.mark.parametrize("second", [b"", b"\x01\x01", b"\x00", b"n,,\x01auth=Bearer alice\x01\x01"])
def test_a_refused_client_gets_no_second_try_in_the_same_exchange(second: bytes) -> None:
    attempt = exchange()
    attempt.respond(message("bad"))
    with pytest.raises(Refused, match="OAUTHBEARER"):
        attempt.respond(second)
    with pytest.raises(Refused, match="OAUTHBEARER"):
        attempt.respond(message("alice"))


def test_nothing_comes_after_an_accepted_token() -> None:
    attempt = exchange()
    attempt.respond(message("alice"))
    with pytest.raises(Refused):
        attempt.respond(message("alice"))


def test_another_authorization_id_is_refused() -> None:
    for asked_for in ("a=bob", "a=ALICE"):
        with pytest.raises(Refused, match="authorization id"):
            exchange().respond(message("alice", asked_for))


def test_names_that_mean_something_else_are_refused() -> None:
    with pytest.raises(Refused, match="reserved"):
        exchange().respond(message("ANONYMOUS"))


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\x01",
        b"\xff\xfe",
        b"n,,",
        b"n,,\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer alice\x01",
        b"n,,\x01auth=Bearer alice\x01\x01\x01",
        b"n,,\x01auth=Bearer alice\x01\x01x",
        b"y,,\x01auth=Bearer alice\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer alice\x01\x01",
        b"n,a=,\x01auth=Bearer alice\x01\x01",
        b"n,a=a=b,\x01auth=Bearer alice\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Basic alice\x01\x01",
        b"n,,\x01auth=Bearer ali ce\x01\x01",
        b"n,,\x01AUTH=Bearer alice\x01\x01",
        b"n,,\x01auth=Bearer alice\x01auth=Bearer bob\x01\x01",
        b"n,,\x01x=1\x01\x01",
        b"n,,\x01auth=Bearer alice\x011x=1\x01\x01",
        b"n,,\x01auth=Bearer alice\x01x=\x01\x01",
        b"n,,\x01auth=Bearer alice\x01x=\xc3\xa4\x01\x01",
        b"n,,\x01auth=Bearer alice\x01x=\x00\x01\x01",
        b"\0alice\0secret",
    ],
)
def test_what_is_no_first_message_is_refused_at_once(first: bytes) -> None:
    with pytest.raises(Refused, match="invalid credentials with SASL mechanism OAUTHBEARER") as refused:
        exchange().respond(first)
    assert "alice" not in refused.value.why
