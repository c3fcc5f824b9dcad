"""Keys are fetched in the background, and nothing that the issuer does takes away those that are known."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from issuing import Issuer

from heirlog.oauth.bounded_http import FetchFailed
from heirlog.oauth.jwk_set import UnknownKey
from heirlog.security.access_token import RefusedToken
from heirlog.server import issuer_keys
from heirlog.server.issuer_keys import IssuerKeys


class Source:
    """What the issuer's endpoint answers, and how often it was asked."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.answer: bytes | None = None
        self.is_down = False
        self.asked = 0

    def read(self, _context: Any = None) -> bytes:
        self.asked += 1
        if self.is_down:
            raise FetchFailed("https://issuer does not answer")
        return self.issuer.jwks() if self.answer is None else self.answer


class Harness:
    def __init__(self, loop: asyncio.AbstractEventLoop, refresh_ms: int = 3_600_000) -> None:
        self.loop = loop
        self.issuer = Issuer()
        self.source = Source(self.issuer)
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.keys = IssuerKeys(
            loop,
            lambda level, event, **values: self.lines.append((event, values)),
            "https://issuer/keys?secret=hunter2",
            self.source.read,
            refresh_ms=refresh_ms,
            backoff_ms=1,
            backoff_max_ms=20,
        )

    def until(self, condition: Any) -> None:
        async def wait() -> None:
            async with asyncio.timeout(30):
                while not condition():
                    await asyncio.sleep(0.002)

        self.loop.run_until_complete(wait())

    def check(self, token: str) -> bool:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0] + "=="))
        try:
            self.keys.payload(token, header)
        except UnknownKey:
            return False
        return True

    def started(self) -> Harness:
        self.keys.start()
        self.until(lambda: "issuer-keys-fetched" in [event for event, _ in self.lines])
        return self


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_before_the_first_answer_tokens_are_refused_and_then_taken(loop: asyncio.AbstractEventLoop) -> None:
    harness = Harness(loop)
    token = harness.issuer.token()
    with pytest.raises(RefusedToken, match="no keys of the issuer yet"):
        harness.check(token)
    assert harness.started().check(token)
    assert "hunter2" not in repr(harness.lines)


def test_known_keys_stay_while_the_issuer_is_down_or_talks_nonsense(loop: asyncio.AbstractEventLoop) -> None:
    harness = Harness(loop, refresh_ms=5).started()
    for answer, is_down in ((None, True), (b"<html>", False), (b'{"keys":[]}', False)):
        harness.source.answer, harness.source.is_down = answer, is_down
        asked = harness.source.asked
        harness.until(lambda: harness.source.asked > asked + 3)  # noqa: B023
        assert harness.check(harness.issuer.token())
    (failure,) = [values for event, values in harness.lines if event == "issuer-keys-not-fetched"]
    assert failure["keeps_old_keys"] is True
    harness.source.answer, harness.source.is_down = None, False
    harness.until(lambda: harness.lines[-1][0] == "issuer-keys-fetched")


def test_an_issuer_that_is_down_at_the_start_is_asked_until_it_answers(loop: asyncio.AbstractEventLoop) -> None:
    harness = Harness(loop)
    harness.source.is_down = True
    harness.keys.start()
    harness.until(lambda: harness.source.asked > 5)
    harness.source.is_down = False
    harness.until(lambda: harness.lines[-1][0] == "issuer-keys-fetched")
    assert harness.check(harness.issuer.token())


def test_a_key_that_was_withdrawn_is_refused_after_the_next_refresh(loop: asyncio.AbstractEventLoop) -> None:
    harness = Harness(loop, refresh_ms=5).started()
    old = harness.issuer.token()
    del harness.issuer.keys["ec"]
    harness.issuer.add("next", "ES256", ec.generate_private_key(ec.SECP256R1()))
    harness.until(lambda: not harness.check(old))
    assert harness.check(harness.issuer.token(kid="next"))


def test_a_new_key_is_fetched_when_a_token_names_it(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "EARLY_REFRESH_MS_MIN", 50)
    harness = Harness(loop).started()
    harness.issuer.add("next", "ES256", ec.generate_private_key(ec.SECP256R1()))
    assert not harness.check(harness.issuer.token(kid="next"))
    harness.until(lambda: harness.source.asked == 2 and harness.check(harness.issuer.token(kid="next")))


def test_a_token_of_an_unknown_key_does_not_put_off_the_next_refresh(loop: asyncio.AbstractEventLoop) -> None:
    harness = Harness(loop, refresh_ms=20).started()
    with pytest.raises(UnknownKey):
        harness.keys.payload(harness.issuer.token(), {"alg": "ES256", "kid": "unknown"})
    begun = loop.time()
    harness.until(lambda: harness.source.asked > 1)
    assert loop.time() - begun < issuer_keys.EARLY_REFRESH_MS_MIN / 1000


def test_tokens_of_invented_keys_cause_few_fetches(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many come, the issuer is asked once per interval, and a fetch that fails is not asked for again early."""
    monkeypatch.setattr(issuer_keys, "EARLY_REFRESH_MS_MIN", 600_000)
    harness = Harness(loop).started()
    header, _, rest = harness.issuer.token().partition(".")
    for number in range(1000):
        with pytest.raises(UnknownKey):
            harness.keys.payload(f"{header}.{rest}", {"alg": "ES256", "kid": f"invented {number}"})
    loop.run_until_complete(asyncio.sleep(0))
    assert harness.source.asked == 1
    waiting = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
    assert len(waiting) == 1
