"""What a client shows at the door of each broker: TLS around the socket, and a SASL exchange.

Made once per client, because reading stores and certificates takes longer than connecting. The certificate of a broker
is always checked against the authorities; its name too unless `check_host_name` is off.
"""

from __future__ import annotations

import secrets
import socket

from heirlog.client.sasl import Mechanism, OAuthBearer, Plain, Scram
from heirlog.client.security import Security, TokenEndpoint
from heirlog.oauth.tokens import Tokens
from heirlog.tls.contexts import client_context
from heirlog.tls.ends import PEER_HAS_GONE

NONCE_BYTES = 24


class Credentials:
    """Raises SecurityError for stores that cannot be read."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tls = client_context(security) if security.uses_tls else None
        source = security.token
        of_endpoint = source.tls if isinstance(source, TokenEndpoint) else None
        tls = None if of_endpoint is None else client_context(of_endpoint)
        self._tokens = None if source is None else Tokens(source, tls)

    @property
    def mechanism_name(self) -> str | None:
        return self._security.mechanism if self._security.uses_sasl else None

    def wrap(self, sock: socket.socket, host: str) -> socket.socket:
        """`sock` inside TLS, where it is wanted. Raises OSError, of which SSLError is one."""
        if self._tls is None:
            return sock
        try:
            return self._tls.wrap_socket(sock, server_hostname=host)
        except (*PEER_HAS_GONE, ConnectionResetError) as error:
            raise ConnectionError("closed during the TLS handshake") from error

    def mechanism(self) -> Mechanism:
        """A fresh exchange."""
        security = self._security
        if security.mechanism == "PLAIN":
            return Plain(security.username, security.password)
        if security.mechanism == "OAUTHBEARER":
            assert self._tokens is not None, "checked by Security"
            return OAuthBearer(self._tokens.token, dict(security.extensions))
        return Scram(
            security.mechanism,
            security.username,
            security.password,
            secrets.token_urlsafe(NONCE_BYTES),
            delegation_token=security.delegation_token,
        )
