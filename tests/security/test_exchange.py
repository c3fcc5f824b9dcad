"""PLAIN from the server's side."""

from __future__ import annotations

import pytest

from heirlog.security.exchange import Accepted, PlainExchange, Refused

USERS = {"alice": "secret", "böb": "pässword,=", "*": "star", "ANONYMOUS": "nobody"}


def told(token: bytes) -> str:
    with pytest.raises(Refused) as refused:
        PlainExchange(USERS).respond(token)
    return refused.value.sentence


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0böb\0pässword,=".encode(), "böb"),
    ],
)
def test_the_right_password_is_accepted(token: bytes, name: str) -> None:
    assert PlainExchange(USERS).respond(token) == Accepted(name)


def test_an_unknown_user_gets_the_same_sentence_as_a_wrong_password() -> None:
    assert told(b"\0alice\0wrong") == told(b"\0nobody\0wrong") == told(b"\0nobody\0secret")


@pytest.mark.parametrize(
    ("token", "sentence"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"\0alice", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0more", "expected 3 tokens, got 4"),
        (b"\0\0secret", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"bob\0alice\0secret", "different from username"),
        (b"\0\xff\0secret", "not UTF-8"),
        (b"\0*\0star", "reserved"),
        (b"\0ANONYMOUS\0nobody", "reserved"),
    ],
)
def test_what_is_no_login_is_refused(token: bytes, sentence: str) -> None:
    assert sentence in told(token)
    assert "secret" not in told(token)
