"""How this node logs in to other nodes: as their listeners want it, and by which channel it reaches which listener.

    BROKER_CHANNELS     to the inter-broker listener of other brokers
    all others          to the listener of the controllers

A broker's certificate must name the address at which it is advertised, since that is what this node connects to
(`ssl.endpoint.identification.algorithm`).
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from heirlog.client.sasl import Mechanism, OAuthBearer, Plain, Scram
from heirlog.client.security import Security, SecurityError, TokenEndpoint, security_from_properties
from heirlog.env import EventLog
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import PLAIN, ListenerSecurity
from heirlog.security.oauthbearer import OAUTHBEARER
from heirlog.security.scram import ITERATIONS_MAX
from heirlog.server.door import NO_STORES, Stores
from heirlog.server.stream import FrameStream

if TYPE_CHECKING:
    import ssl

    from heirlog.oauth.tokens import Tokens
    from heirlog.server.peer_token import PeerToken
    from heirlog.server.tls_stream import HandshakeTurns, TlsReceiver

BROKER_CHANNELS: Final = ("probe", "replica-fetch", "recovery", "share-", "txn-markers", "txn-partitions")
"""What their names begin with."""
NONCE_BYTES: Final = 24


class Peer:
    """One kind of listener of other nodes. Raises SecurityError for stores that cannot be read."""

    def __init__(self, loop: asyncio.AbstractEventLoop, security: Security, log: EventLog) -> None:
        self._security = security
        self._token: PeerToken | None = None
        self._tokens: Tokens | None = None
        if self.mechanism_name == OAUTHBEARER:
            from heirlog.oauth.tokens import Tokens
            from heirlog.server.peer_token import PeerToken

            assert security.token is not None, "checked by Security"
            self._tokens = Tokens(security.token, _context_of_endpoint(security))
            self._token = PeerToken(loop, self._tokens, log)
        self._context: ssl.SSLContext | None = None
        self._turns: HandshakeTurns | None = None
        if security.uses_tls:
            from heirlog.server.tls_stream import HandshakeTurns
            from heirlog.tls.contexts import client_context

            self._context = client_context(security)
            self._turns = HandshakeTurns(loop)

    def contexts(self, security: Security) -> PeerContexts:
        """From stores that are read again. Raises SecurityError."""
        if self._context is None:
            return PeerContexts(None, _context_of_endpoint(self._security))
        from heirlog.tls.contexts import client_context

        return PeerContexts(client_context(security), _context_of_endpoint(self._security))

    def in_use(self) -> PeerContexts:
        return PeerContexts(self._context, None if self._tokens is None else self._tokens.tls)

    def use(self, contexts: PeerContexts) -> None:
        """For new connections."""
        self._context = contexts.of_nodes
        if self._tokens is not None:
            self._tokens.tls = contexts.of_issuer

    @property
    def uses_tls(self) -> bool:
        return self._context is not None

    @property
    def mechanism_name(self) -> str | None:
        return self._security.mechanism if self._security.uses_sasl else None

    def mechanism(self) -> Mechanism:
        """A fresh exchange."""
        security = self._security
        if security.mechanism == PLAIN:
            return Plain(security.username, security.password)
        if self._token is not None:
            return OAuthBearer(self._token.token, dict(security.extensions))
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        return Scram(security.mechanism, security.username, security.password, nonce, max_iterations=ITERATIONS_MAX)

    def stream(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        staging: memoryview,
        frame_limit: int,
        receiver: TlsReceiver,
        host: str,
    ) -> FrameStream:
        if self._context is None:
            return FrameStream(loop, sock, staging, frame_limit, receiver)
        from heirlog.server.tls_stream import TlsStream

        assert self._turns is not None, "made with the context"
        return TlsStream(loop, sock, staging, frame_limit, receiver, self._context, self._turns, host)


class PeerContexts(NamedTuple):
    """None without TLS."""

    of_nodes: ssl.SSLContext | None
    of_issuer: ssl.SSLContext | None
    """Where this node's tokens come from; None: as the system does it."""


class Peers:
    """Those of one node. Raises SecurityError."""

    def __init__(self, loop: asyncio.AbstractEventLoop, config: StaticConfig, log: EventLog) -> None:
        self._config = config
        self._settings = (
            (config.controller_listener_names[0], config["sasl.mechanism.controller.protocol"]),
            (config.inter_broker_listener_name, config["sasl.mechanism.inter.broker.protocol"]),
        )
        self._controllers, self._brokers = (Peer(loop, security, log) for security in self._securities(NO_STORES))

    def _securities(self, stores: Stores) -> list[Security]:
        """Raises SecurityError."""
        return [
            _security(self._config.security(listener).with_stores(stores.get(listener, {})), mechanism)
            for listener, mechanism in self._settings
        ]

    def contexts(self, stores: Stores = NO_STORES) -> list[PeerContexts]:
        """From stores that are read again. Raises SecurityError.

        stores: by listener, what differs from the file. A node shows the same certificate as a client of other nodes.
        """
        peers = (self._controllers, self._brokers)
        return [peer.contexts(security) for peer, security in zip(peers, self._securities(stores), strict=True)]

    def in_use(self) -> list[PeerContexts]:
        return [peer.in_use() for peer in (self._controllers, self._brokers)]

    def check(self, doors: Mapping[str, ssl.SSLContext], contexts: Sequence[PeerContexts]) -> None:
        """Raises SecurityError where nodes with these contexts would refuse each other. doors: by listener."""
        from heirlog.tls.self_check import reason_against

        config = self._config
        advertised = {
            listener.name: listener.endpoint.host
            for listener in (*config.advertised_listeners, *config.advertised_controller_listeners)
        }
        for (listener, _), found in zip(self._settings, contexts, strict=True):
            context = found.of_nodes
            if context is None or listener not in doors or listener not in advertised:
                continue
            reason = reason_against(doors[listener], context, advertised[listener])
            if reason is not None:
                raise SecurityError(f"listener {listener}, the certificate: {reason}")

    def use(self, contexts: Sequence[PeerContexts]) -> None:
        """For new connections."""
        for peer, context in zip((self._controllers, self._brokers), contexts, strict=True):
            peer.use(context)

    def of_channel(self, channel: str) -> Peer:
        return self._brokers if channel.startswith(BROKER_CHANNELS) else self._controllers


def _context_of_endpoint(security: Security) -> ssl.SSLContext | None:
    """Raises SecurityError."""
    source = security.token
    if not isinstance(source, TokenEndpoint) or source.tls is None:
        return None
    from heirlog.tls.contexts import client_context

    return client_context(source.tls)


def _security(listener: ListenerSecurity, mechanism: str) -> Security:
    try:
        return security_from_properties(listener.peer_properties(mechanism))
    except SecurityError as error:
        raise SecurityError(f"connecting to listener {listener.listener} of other nodes: {error}") from error
