"""The token by which this node logs in to others: fetched in the background, so that the loop never waits for it.

    none yet              connections wait: the pool tries again, and finds the token
    4/5 of its lifetime   a new one is fetched. Until it is there, the old one is used
    a fetch that failed   again after `BACKOFF_S`, twice as long each time up to `BACKOFF_MAX_S`

A token that is made or read from a file needs no thread.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Final

from heirlog.client.errors import AuthenticationFailed
from heirlog.env import EventLog
from heirlog.oauth.tokens import Tokens
from heirlog.rate_limited_log import RateLimitedLog

BACKOFF_S: Final = 0.1
BACKOFF_MAX_S: Final = 10.0
PAUSE_S_MIN: Final = 1.0
"""Between two fetches, also of tokens that live shorter."""


class PeerToken:
    def __init__(self, loop: asyncio.AbstractEventLoop, tokens: Tokens, log: EventLog) -> None:
        self._loop = loop
        self._tokens = tokens
        self._log_limited = RateLimitedLog(log, lambda: loop.time() * 1000)
        self._token: str | None = None
        self._failures = 0
        if tokens.is_fetched:
            loop.call_soon(self._fetch)

    def token(self) -> str:
        """Raises AuthenticationFailed while there is none."""
        if not self._tokens.is_fetched:
            return self._tokens.token()
        if self._token is None:
            raise AuthenticationFailed("it has no token yet (sasl.oauthbearer.token.endpoint.url)")
        return self._token

    def _fetch(self) -> None:
        threading.Thread(target=self._work, name="peer-token", daemon=True).start()

    def _work(self) -> None:
        found: str | Exception
        try:
            found = self._tokens.token()
        except Exception as error:  # of any kind: the next attempt may succeed
            found = error
        with suppress(RuntimeError):  # the loop is closed: the node has ended
            self._loop.call_soon_threadsafe(self._fetched, found)

    def _fetched(self, found: str | Exception) -> None:
        if isinstance(found, str):
            self._token, self._failures = found, 0
            self._loop.call_later(max(PAUSE_S_MIN, self._tokens.fresh_s), self._fetch)
            return
        self._log_limited("error", "token-not-fetched", why=str(found), keeps_old_token=self._token is not None)
        self._loop.call_later(min(BACKOFF_MAX_S, BACKOFF_S * 2 ** min(self._failures, 30)), self._fetch)
        self._failures += 1
