"""Tokens for OAUTHBEARER: made (unsecured, for tests), read from a file, or fetched by OAuth 2 client credentials.

A token is fetched for each new connection that finds the last one near its end; brokers end sessions with the token's
life, and then there is a new connection. What goes wrong is said without the secret and without the server's text,
which might repeat it.

Source: KIP-255, KIP-768; RFC 6749 section 4.4.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
import urllib.request
from base64 import b64encode, urlsafe_b64encode
from ssl import SSLContext

from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import TokenEndpoint, TokenSource, UnsecuredToken
from heirlog.oauth.bounded_http import FetchFailed, fetch, read_file, without_secrets

FRESH_SHARE = 0.8
"""A token is reused until this share of its lifetime has passed."""


class Tokens:
    """The tokens of one client. tls: how https is spoken to the endpoint, None for the system's way."""

    def __init__(self, source: TokenSource, tls: SSLContext | None = None) -> None:
        self._source = source
        self.tls = tls
        """It may be replaced from outside: a fetch takes the one that it finds."""
        self._token = ""
        self._good_until = 0.0

    @property
    def is_fetched(self) -> bool:
        """Over the network, which takes its time."""
        return isinstance(self._source, TokenEndpoint) and not self._source.is_file

    @property
    def fresh_s(self) -> float:
        """For how long the last token will be used."""
        return self._good_until - time.monotonic()

    def token(self) -> str:
        """Raises AuthenticationFailed where there is none to be had, ConnectionError where nobody answered."""
        source = self._source
        if isinstance(source, UnsecuredToken):
            return unsecured_jwt(source, time.time())
        if not isinstance(source, TokenEndpoint):
            return source()
        if source.is_file:
            return self._read(source.url)
        if time.monotonic() >= self._good_until:
            asked_at = time.monotonic()
            self._token, lifetime_s = self._fetch(source)
            self._good_until = asked_at + FRESH_SHARE * lifetime_s
        return self._token

    def _read(self, url: str) -> str:
        try:
            return read_file(url).decode("ascii").strip()
        except FetchFailed as error:
            raise AuthenticationFailed(f"there is no token: {error}") from None
        except UnicodeDecodeError:
            raise AuthenticationFailed(f"there is no token in {without_secrets(url)}: it is not text") from None

    def _fetch(self, source: TokenEndpoint) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"}
        if source.scope:
            form["scope"] = source.scope
        credentials = b64encode(f"{source.client_id}:{source.client_secret}".encode()).decode()
        request = urllib.request.Request(
            source.url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        try:
            content = json.loads(fetch(request, self.tls))
            token, lifetime_s = str(content["access_token"]), float(content.get("expires_in", 0))
        except FetchFailed as error:
            if error.status:
                raise AuthenticationFailed(f"the token endpoint {error}") from None
            raise ConnectionError(f"the token endpoint {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise AuthenticationFailed(
                f"the token endpoint {without_secrets(source.url)} answered without an access_token"
            ) from None
        return token, lifetime_s if math.isfinite(lifetime_s) else 0.0


def unsecured_jwt(source: UnsecuredToken, now_s: float) -> str:
    """Header and claims without a signature (alg none), as Kafka's own test login makes it."""
    claims: dict[str, object] = {"sub": source.subject, "iat": now_s, "exp": now_s + source.lifetime_s}
    if source.scope:
        claims["scope"] = list(source.scope)
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: dict[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")
