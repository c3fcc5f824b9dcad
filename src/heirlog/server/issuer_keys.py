"""The keys by which a listener checks tokens: fetched in the background, and kept while the issuer does not answer.

    start                    fetched at once; until then every token is refused, and the node serves all other clients
    after refresh.ms         fetched again: a key that the issuer has withdrawn is good for that long
    a token of unknown kid   fetched again, at most once in `EARLY_REFRESH_MS_MIN`, however many such tokens come. That
                             token is refused; the client's next attempt finds the key
    a fetch that failed      the keys stay; again after retry.backoff.ms, twice as long each time up to the maximum

A fetch runs in a thread of its own, one at a time: connections never wait for the issuer. Kafka does not start while
the issuer is down; here nodes can be restarted then. A file is read again in the same way.

Source: KIP-768; Kafka's RefreshingHttpsJwks.
"""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final

from heirlog.client.security import Security, SecurityError, security_from_properties
from heirlog.env import EventLog
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import ListenerSecurity, jaas_module
from heirlog.oauth.bounded_http import FetchFailed, fetch, read_file, without_secrets
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.security.access_token import RefusedToken
from heirlog.security.oauthbearer import OAUTHBEARER

if TYPE_CHECKING:
    from heirlog.oauth.jwk_set import JwkSet

EARLY_REFRESH_MS_MIN: Final = 10_000


class IssuerKeys:
    """Of one listener. read: the document with the keys; called in a thread. Raises FetchFailed.

    trust: makes the context for https from stores that are read. Raises SecurityError.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        log: EventLog,
        url: str,
        read: Callable[[SSLContext | None], bytes],
        *,
        trust: Callable[[], SSLContext | None] = lambda: None,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
    ) -> None:
        self._loop = loop
        self._log = log
        self._log_limited = RateLimitedLog(log, lambda: loop.time() * 1000)
        self._url = without_secrets(url)
        self._read = read
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._trust = trust
        self._context = trust()
        self._keys: JwkSet | None = None
        self._failures = 0
        self._begun_at = 0.0
        self._next: asyncio.TimerHandle | None = None
        """None during a fetch."""

    def start(self) -> None:
        self._fetch()

    def context(self) -> SSLContext | None:
        """For https, from stores that are read again. Raises SecurityError."""
        return self._trust()

    def use(self, context: SSLContext | None) -> None:
        """For the next fetch."""
        self._context = context

    def payload(self, token: str, header: Mapping[str, Any]) -> bytes:
        from heirlog.oauth.jwk_set import UnknownKey

        if self._keys is None:
            raise RefusedToken(f"this node has no keys of the issuer yet ({self._url})")
        try:
            return self._keys.payload(token, header)
        except UnknownKey:
            self._fetch_early()
            raise

    def _fetch_early(self) -> None:
        at = self._begun_at + EARLY_REFRESH_MS_MIN / 1000
        # what is planned already may come sooner
        if self._next is not None and self._next.when() > at:
            self._next.cancel()
            self._next = self._loop.call_at(at, self._fetch)

    def _fetch(self) -> None:
        self._next = None
        self._begun_at = self._loop.time()
        threading.Thread(target=self._work, name="issuer-keys", daemon=True).start()

    def _work(self) -> None:
        from heirlog.oauth.jwk_set import JwkSet, UnusableKeySet

        found: JwkSet | str
        try:
            found = JwkSet(self._read(self._context))
        except FetchFailed as error:
            found = str(error)
        except UnusableKeySet as error:
            found = f"{self._url} has no keys that can be used: {error}"
        except Exception as error:  # no answer that is bad in a new way may end the refreshing
            found = f"{self._url}: {error!r}"
        with suppress(RuntimeError):  # the loop is closed: the node has ended
            self._loop.call_soon_threadsafe(self._fetched, found)

    def _fetched(self, found: JwkSet | str) -> None:
        if isinstance(found, str):
            delay_ms = min(self._backoff_max_ms, self._backoff_ms * 2 ** min(self._failures, 30))
            self._failures += 1
            self._log_limited("error", "issuer-keys-not-fetched", why=found, keeps_old_keys=self._keys is not None)
            self._next = self._loop.call_later(delay_ms / 1000, self._fetch)
            return
        if self._keys is None or self._failures:
            self._log("info", "issuer-keys-fetched", url=self._url, keys=len(found))
        self._keys, self._failures = found, 0
        self._next = self._loop.call_later(self._refresh_ms / 1000, self._fetch)


def issuer_keys(loop: asyncio.AbstractEventLoop, config: StaticConfig, log: EventLog) -> dict[str, IssuerKeys]:
    """By listener, those that check signatures; not started yet. Raises SecurityError."""
    found: dict[str, IssuerKeys] = {}
    for listener in config.all_listeners:
        security = config.security(listener.name)
        if security.bearer is not None and security.bearer.jwks_url:
            try:
                import heirlog.oauth.jwk_set  # noqa: F401  # not at the first login
            except ImportError as error:
                raise SecurityError(
                    f"listener {listener.name}: tokens are checked by the package PyJWT: install heirlog[oauth]"
                ) from error
            found[listener.name] = _keys_of(loop, security, security.bearer.jwks_url, log)
    return found


def _keys_of(loop: asyncio.AbstractEventLoop, security: ListenerSecurity, url: str, log: EventLog) -> IssuerKeys:
    is_file = url.startswith("file:")
    if is_file:
        try:
            read_file(url)
        except FetchFailed as error:
            raise SecurityError(
                f"sasl.oauthbearer.jwks.endpoint.url of listener {security.listener}: {error}"
            ) from error
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    return IssuerKeys(
        loop,
        log,
        url,
        (lambda _: read_file(url)) if is_file else partial(fetch, request),
        trust=partial(_context, security),
        refresh_ms=security.value("sasl.oauthbearer.jwks.endpoint.refresh.ms", OAUTHBEARER),
        backoff_ms=security.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", OAUTHBEARER),
        backoff_max_ms=security.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", OAUTHBEARER),
    )


def _context(security: ListenerSecurity) -> SSLContext | None:
    """How https is spoken: by the `ssl.` options of the JAAS entry, as in Kafka."""
    from heirlog.tls.contexts import client_context

    module = jaas_module(security, OAUTHBEARER)
    options = {} if module is None else {name: text for name, text in module.options.items() if name.startswith("ssl.")}
    if not options:
        return None
    wanted: Security = security_from_properties({**options, "security.protocol": "SSL"})
    return client_context(wanted)
