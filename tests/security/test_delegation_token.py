"""A login with a delegation token: SCRAM with its id and its HMAC."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode

import pytest

from heirlog.client.sasl import Scram
from heirlog.security.delegation_token import REMEMBERED_MAX, TokenSecrets
from heirlog.security.exchange import Accepted, Challenge, Refused
from heirlog.security.scram import ScramExchange, ScramMechanism, TokenLogin

SECRETS = TokenSecrets("hunter2")
PASSWORD = b64encode(SECRETS.hmac_of("token")).decode()


def accepted(name: str, password: str, mechanism: ScramMechanism, *, delegation_token: bool = True) -> Accepted:
    def find(token_id: str) -> TokenLogin | None:
        return TokenLogin(SECRETS.credential(token_id, mechanism), "alice", 7) if token_id == "token" else None

    user = SECRETS.credential("token", mechanism)
    server = ScramExchange(mechanism, {"user": user}.get, "more", b"secret", find)
    client = Scram(mechanism.mechanism, name, password, "nonce", delegation_token=delegation_token)
    challenge = server.respond(client.first())
    assert isinstance(challenge, Challenge)
    step = server.respond(client.answer(challenge.token) or b"")
    assert isinstance(step, Accepted) and client.answer(step.token) is None
    return step


def test_the_hmac_is_kafkas() -> None:
    assert SECRETS.hmac_of("token") == hmac.digest(b"hunter2", b"token", hashlib.sha512)
    assert "hunter2" not in repr(SECRETS)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_the_bearer_is_the_owner_until_the_token_ends(mechanism: ScramMechanism) -> None:
    step = accepted("token", PASSWORD, mechanism)
    assert (step.name, step.ends_at_ms, step.by_delegation_token) == ("alice", 7, True)


@pytest.mark.parametrize(
    ("name", "password", "delegation_token"),
    [
        ("token", "wrong", True),
        ("other", PASSWORD, True),
        ("token", PASSWORD, False),
        ("user", PASSWORD, True),
        ("alice", PASSWORD, True),
    ],
)
def test_a_token_is_no_user_and_a_user_no_token(name: str, password: str, delegation_token: bool) -> None:
    with pytest.raises(Refused, match="invalid credentials"):
        accepted(name, password, ScramMechanism.SHA_256, delegation_token=delegation_token)


def test_a_token_that_has_ended_is_refused_like_a_wrong_one_and_the_log_says_why() -> None:
    """An operator has to find a node whose clock is wrong, and the client learns nothing."""
    ended = TokenLogin(SECRETS.credential("token", ScramMechanism.SHA_256), "alice", 7, has_ended=True)
    refusals = []
    for password in (PASSWORD, "wrong"):
        client = Scram("SCRAM-SHA-256", "token", password, "nonce", delegation_token=True)
        server = ScramExchange(ScramMechanism.SHA_256, lambda user: None, "more", b"", lambda token_id: ended)
        challenge = server.respond(client.first())
        assert isinstance(challenge, Challenge)
        with pytest.raises(Refused) as refused:
            server.respond(client.answer(challenge.token) or b"")
        refusals.append(refused.value)
    right, wrong = refusals
    assert right.sentence == wrong.sentence
    assert "clock of this node" in right.why and "clock" not in wrong.why


def test_a_user_logs_in_as_before() -> None:
    step = accepted("user", PASSWORD, ScramMechanism.SHA_256, delegation_token=False)
    assert (step.name, step.ends_at_ms, step.by_delegation_token) == ("user", None, False)


def test_a_credential_is_derived_once_and_a_bounded_number_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from heirlog.security import delegation_token

    derived: list[str] = []

    def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
        derived.append(password)
        return salt

    monkeypatch.setattr(delegation_token, "salted_password", salted)
    secrets = TokenSecrets("key")
    first = secrets.credential("0", ScramMechanism.SHA_256)
    assert secrets.credential("0", ScramMechanism.SHA_256) is first
    for number in range(REMEMBERED_MAX):
        secrets.credential(f"{number}", ScramMechanism.SHA_256)
    assert len(derived) == REMEMBERED_MAX
    secrets.credential("one more", ScramMechanism.SHA_256)
    secrets.credential("0", ScramMechanism.SHA_256)
    assert len(derived) == REMEMBERED_MAX + 2
