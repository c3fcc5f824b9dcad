"""SCRAM from the server's side, against the product's client and against clients that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.sasl import Scram
from heirlog.security.exchange import Accepted, Challenge, Refused
from heirlog.security.scram import (
    ITERATIONS_MIN,
    MESSAGE_BYTES_MAX,
    ScramCredential,
    ScramExchange,
    ScramMechanism,
    TokenLogin,
    credential_of,
    random_text,
    salted_password,
)

SALT = b"a salt"
PASSWORD = "pässword"


def stored(mechanism: ScramMechanism, iterations: int = ITERATIONS_MIN) -> ScramCredential:
    return credential_of(mechanism, salted_password(mechanism, PASSWORD, SALT, iterations), SALT, iterations)


def exchange(
    mechanism: ScramMechanism = ScramMechanism.SHA_256, iterations: int = ITERATIONS_MIN, user: str = "alice"
) -> ScramExchange:
    known = {user: stored(mechanism, iterations), "*": stored(mechanism)}
    return ScramExchange(mechanism, known.get, "server", b"secret")


def logged_in(server: ScramExchange, client: Scram) -> Accepted:
    said = client.first()
    while True:
        step = server.respond(said)
        if isinstance(step, Accepted):
            assert client.answer(step.token) is None, "the server has proved itself"
            return step
        answer = client.answer(step.token)
        assert answer is not None
        said = answer


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("user", ["alice", "a,b=c"])
def test_the_right_password_is_accepted(mechanism: ScramMechanism, user: str) -> None:
    client = Scram(mechanism.mechanism, user, PASSWORD, "client")
    assert logged_in(exchange(mechanism, user=user), client).name == user


def test_the_example_of_the_standard() -> None:
    """RFC 7677, section 3: password "pencil"."""
    sha_256, salt = ScramMechanism.SHA_256, base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    known = {"user": credential_of(sha_256, salted_password(sha_256, "pencil", salt, 4096), salt, 4096)}
    server = ScramExchange(sha_256, known.get, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"")
    step = server.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert isinstance(step, Challenge)
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert step.token == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    accepted = server.respond(b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    assert accepted == Accepted("user", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def refused(server: ScramExchange, password: str, user: str = "alice") -> tuple[int, str]:
    """After how many messages, and with which sentence."""
    client = Scram("SCRAM-SHA-256", user, password, "client")
    said, count = client.first(), 0
    try:
        while True:
            count += 1
            step = server.respond(said)
            assert isinstance(step, Challenge)
            answer = client.answer(step.token)
            assert answer is not None
            said = answer
    except Refused as error:
        return count, error.sentence


def test_an_unknown_user_is_refused_like_a_wrong_password() -> None:
    assert refused(exchange(), "wrong") == refused(exchange(), PASSWORD, "mallory")


def test_the_salt_of_an_unknown_user_is_always_the_same_and_looks_like_others() -> None:
    first = [exchange().respond(b"n,,n=mallory,r=x") for _ in range(2)]
    other = exchange().respond(b"n,,n=eve,r=x")
    assert first[0] == first[1] != other
    assert isinstance(other, Challenge)
    salt = base64.b64decode(other.token.split(b",s=")[1].split(b",")[0])
    assert salt.isalnum() and len(salt) in range(24, 27)
    assert len(random_text(bytes(range(200, 217)))) in range(24, 27)


def half_way(server: ScramExchange, *, is_token: bool = False) -> bytes:
    """The last message of a client that knows the password."""
    client = Scram("SCRAM-SHA-256", "alice", PASSWORD, "client", delegation_token=is_token)
    step = server.respond(client.first())
    assert isinstance(step, Challenge)
    said = client.answer(step.token)
    assert said is not None
    return said


@pytest.mark.parametrize("is_token", [False, True])
def test_what_was_deleted_or_replaced_between_two_messages_lets_nobody_in(is_token: bool) -> None:
    """A client that kept its last message in hand would have a password that nobody can take from it."""
    mechanism = ScramMechanism.SHA_256
    old, other = stored(mechanism), credential_of(mechanism, b"other", SALT, ITERATIONS_MIN)
    known: dict[str, ScramCredential] = {}
    ends_ms = [1_000]

    def token(token_id: str) -> TokenLogin | None:
        return TokenLogin(known[token_id], "owner", ends_ms[0]) if token_id in known else None

    for then in ({}, {"alice": other}, {"alice": old}):
        known["alice"], ends_ms[0] = old, 1_000
        server = ScramExchange(mechanism, known.get, "server", b"secret", token)
        said = half_way(server, is_token=is_token)
        known.clear()
        known.update(then)
        ends_ms[0] = 2_000
        if then.get("alice") == old:
            accepted = server.respond(said)
            assert isinstance(accepted, Accepted)
            # of a token that was renewed meanwhile
            assert (accepted.name, accepted.ends_at_ms) == (("owner", 2_000) if is_token else ("alice", None))
        else:
            with pytest.raises(Refused):
                server.respond(said)


def test_a_weak_credential_lets_nobody_in() -> None:
    assert refused(exchange(iterations=4095), PASSWORD)[0] == 2


def test_a_reserved_name_lets_nobody_in() -> None:
    assert "reserved" in refused(exchange(), PASSWORD, "*")[1]


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,,n=alice",
        b"n,,n=alice,r=",
        b"n,,n=al ice\xff,r=x",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=alice,r=a b",
        b"n,,m=ext,n=alice,r=x",
        b"n,,n=alice,r=x,m=ext",
        "n,,n=älice,r=x".encode(),
        b"n,a=bob,n=alice,r=x",
        b"n,,n=alice,r=x\n",
    ],
)
def test_a_first_message_of_another_form_ends_the_attempt(first: bytes) -> None:
    server = exchange()
    with pytest.raises(Refused):
        server.respond(first)
    with pytest.raises(Refused):
        server.respond(b"n,,n=alice,r=x")


class Cheat:
    """A client that knows the password and deviates in one thing."""

    def __init__(self, gs2: str = "n,,") -> None:
        self.gs2 = gs2
        self.bare = "n=alice,r=client"
        self.server = exchange()
        step = self.server.respond((gs2 + self.bare).encode())
        assert isinstance(step, Challenge)
        self.challenge = step.token.decode()
        self.nonce = self.challenge.split(",")[0].removeprefix("r=")

    def last(
        self, binding: str = "biws", nonce: str | None = None, more: str = "", proof: bytes | None = None
    ) -> bytes:
        without = f"c={binding},r={self.nonce if nonce is None else nonce}{more}"
        signed = ",".join([self.bare, self.challenge, without]).encode()
        salted = salted_password(ScramMechanism.SHA_256, PASSWORD, SALT, 4096)
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        made = bytes(a ^ b for a, b in zip(key, signature, strict=True)) if proof is None else proof
        return f"{without},p={base64.b64encode(made).decode()}".encode()


def test_a_message_that_takes_long_to_read_is_refused_unread() -> None:
    first = b"n,,n=alice,r=client,x="
    assert exchange().respond(first.ljust(MESSAGE_BYTES_MAX, b"x"))
    with pytest.raises(Refused):
        exchange().respond(first.ljust(MESSAGE_BYTES_MAX + 1, b"x"))


def test_what_the_cheats_vary_is_accepted_as_it_is() -> None:
    cheat = Cheat()
    assert isinstance(cheat.server.respond(cheat.last()), Accepted)


def test_the_binding_may_be_the_header_that_was_sent() -> None:
    """franz-go always sends biws, other clients what they began with."""
    for binding in ("biws", base64.b64encode(b"n,a=alice,").decode()):
        cheat = Cheat("n,a=alice,")
        assert isinstance(cheat.server.respond(cheat.last(binding)), Accepted)


@pytest.mark.parametrize(
    "vary",
    [
        lambda cheat: cheat.last(binding=base64.b64encode(b"y,,").decode()),
        lambda cheat: cheat.last(binding=""),
        lambda cheat: cheat.last(nonce="client"),
        lambda cheat: cheat.last(nonce="server"),
        lambda cheat: cheat.last(nonce=""),
        lambda cheat: cheat.last(nonce=cheat.nonce + "x"),
        lambda cheat: cheat.last(nonce="x" + cheat.nonce),
        lambda cheat: cheat.last(proof=b""),
        lambda cheat: cheat.last(proof=bytes(32)),
        lambda cheat: cheat.last(proof=bytes(64)),
        lambda cheat: cheat.last() + b"!",
        lambda cheat: cheat.last()[:-8],
        lambda cheat: b"c=biws,r=" + cheat.nonce.encode(),
    ],
)
def test_a_last_message_that_deviates_is_refused(vary: Callable[[Cheat], bytes]) -> None:
    cheat = Cheat()
    said = vary(cheat)
    with pytest.raises(Refused):
        cheat.server.respond(said)
    with pytest.raises(Refused):
        cheat.server.respond(cheat.last())


def test_the_last_message_of_another_login_is_refused() -> None:
    known = {"alice": stored(ScramMechanism.SHA_256)}
    one, other = (ScramExchange(ScramMechanism.SHA_256, known.get, nonce, b"") for nonce in ("one", "other"))
    client = Scram("SCRAM-SHA-256", "alice", PASSWORD, "client")
    step = one.respond(client.first())
    assert isinstance(step, Challenge)
    last = client.answer(step.token)
    assert last is not None and isinstance(one.respond(last), Accepted)
    other.respond(client.first())
    with pytest.raises(Refused):
        other.respond(last)


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = Scram("SCRAM-SHA-256", "alice", PASSWORD, "client")
    step = exchange().respond(client.first())
    assert isinstance(step, Challenge)
    client.answer(step.token)
    with pytest.raises(AuthenticationFailed, match="signature is wrong"):
        client.answer(b"v=" + base64.b64encode(bytes(32)))
