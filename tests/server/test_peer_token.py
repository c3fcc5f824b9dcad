"""The token of a node as a client of other nodes: the loop never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from issuing import Issuer, OAuthServer, oauth_server

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import TokenEndpoint, TokenSource, UnsecuredToken
from heirlog.oauth.tokens import Tokens
from heirlog.server import peer_token
from heirlog.server.peer_token import PeerToken


@pytest.fixture(scope="module")
def server() -> Iterator[OAuthServer]:
    with oauth_server(Issuer()) as made:
        yield made


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def until(loop: asyncio.AbstractEventLoop, condition: Any) -> None:
    async def wait() -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.005)

    loop.run_until_complete(wait())


def peer(loop: asyncio.AbstractEventLoop, source: TokenSource, lines: list[Any] | None = None) -> PeerToken:
    return PeerToken(loop, Tokens(source), lambda level, event, **values: (lines or []).append((event, values)))


def has_token(token: PeerToken) -> bool:
    try:
        return bool(token.token())
    except AuthenticationFailed:
        return False


def test_a_token_is_fetched_and_replaced_before_it_ends(
    loop: asyncio.AbstractEventLoop, server: OAuthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_token, "PAUSE_S_MIN", 0.02)
    server.lifetime_s = 1.0
    token = peer(loop, TokenEndpoint(f"{server.url}/token", "node", server.SECRET))
    assert not has_token(token)
    until(loop, lambda: has_token(token))
    first = token.token()
    until(loop, lambda: token.token() != first)


def test_an_endpoint_that_refuses_is_asked_again_and_named_in_the_log(
    loop: asyncio.AbstractEventLoop, server: OAuthServer
) -> None:
    lines: list[Any] = [None]
    asked = len(server.asked)
    token = peer(loop, TokenEndpoint(f"{server.url}/token", "node", "hunter2"), lines)
    until(loop, lambda: len(server.asked) > asked + 2)
    assert not has_token(token)
    until(loop, lambda: len(lines) > 1)
    assert "answered 401" in lines[1][1]["why"] and "hunter2" not in repr(lines)


def test_a_token_that_is_made_here_is_there_at_once(loop: asyncio.AbstractEventLoop) -> None:
    assert has_token(peer(loop, UnsecuredToken("node")))
