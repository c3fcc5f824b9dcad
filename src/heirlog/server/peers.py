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
from typing import TYPE_CHECKING, Final

from heirlog.client.sasl import Mechanism, OAuthBearer, Plain, Scram
from heirlog.client.security import Security, SecurityError, TokenEndpoint, security_from_properties
from heirlog.env import EventLog
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import PLAIN, ListenerSecurity
from heirlog.security.oauthbearer import OAUTHBEARER
from heirlog.security.scram import ITERATIONS_MAX
from heirlog.server.stream import FrameStream

if TYPE_CHECKING:
    import ssl

    from heirlog.server.peer_token import PeerToken
    from heirlog.server.tls_stream import HandshakeTurns, TlsReceiver

BROKER_CHANNELS: Final = ("probe", "replica-fetch", "recovery", "share-", "txn-markers", "txn-partitions")
"""What their names begin with."""
NONCE_BYTES: Final = 24


class Peer:
    """One kind of listener of other nodes. Raises SecurityError for stores that cannot be read."""

    def __init__(self, loop: asyncio.AbstractEventLoop, security: Security, log: EventLog) -> None:
        self._security = security
        self._token = _token(loop, security, log) if self.mechanism_name == OAUTHBEARER else None
        self._context: ssl.SSLContext | None = None
        self._turns: HandshakeTurns | None = None
        if security.uses_tls:
            from heirlog.server.tls_stream import HandshakeTurns
            from heirlog.tls.contexts import client_context

            self._context = client_context(security)
            self._turns = HandshakeTurns(loop)

    def context(self) -> ssl.SSLContext | None:
        """From stores that are read again; None without TLS. Raises SecurityError."""
        if self._context is None:
            return None
        from heirlog.tls.contexts import client_context

        return client_context(self._security)

    def use(self, context: ssl.SSLContext | None) -> None:
        """For new connections."""
        self._context = context

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


class Peers:
    """Those of one node. Raises SecurityError."""

    def __init__(self, loop: asyncio.AbstractEventLoop, config: StaticConfig, log: EventLog) -> None:
        self._config = config
        listener, setting = config.controller_listener_names[0], "sasl.mechanism.controller.protocol"
        self._controllers = Peer(loop, _security(config.security(listener), config[setting]), log)
        listener, setting = config.inter_broker_listener_name, "sasl.mechanism.inter.broker.protocol"
        self._brokers = Peer(loop, _security(config.security(listener), config[setting]), log)

    def contexts(self) -> list[ssl.SSLContext | None]:
        """From stores that are read again. Raises SecurityError."""
        return [peer.context() for peer in (self._controllers, self._brokers)]

    def check(self, doors: Mapping[str, ssl.SSLContext], contexts: Sequence[ssl.SSLContext | None]) -> None:
        """Raises SecurityError where nodes with these contexts would refuse each other. doors: by listener."""
        from heirlog.tls.self_check import reason_against

        config = self._config
        advertised = {
            listener.name: listener.endpoint.host
            for listener in (*config.advertised_listeners, *config.advertised_controller_listeners)
        }
        between = (config.controller_listener_names[0], config.inter_broker_listener_name)
        for listener, context in zip(between, contexts, strict=True):
            if context is None or listener not in doors or listener not in advertised:
                continue
            reason = reason_against(doors[listener], context, advertised[listener])
            if reason is not None:
                raise SecurityError(f"listener {listener}, the certificate: {reason}")

    def use(self, contexts: Sequence[ssl.SSLContext | None]) -> None:
        """For new connections."""
        for peer, context in zip((self._controllers, self._brokers), contexts, strict=True):
            peer.use(context)

    def of_channel(self, channel: str) -> Peer:
        return self._brokers if channel.startswith(BROKER_CHANNELS) else self._controllers


def _token(loop: asyncio.AbstractEventLoop, security: Security, log: EventLog) -> PeerToken:
    from heirlog.oauth.tokens import Tokens
    from heirlog.server.peer_token import PeerToken

    source = security.token
    assert source is not None, "checked by Security"
    context = None
    if isinstance(source, TokenEndpoint) and source.tls is not None:
        from heirlog.tls.contexts import client_context

        context = client_context(source.tls)
    return PeerToken(loop, Tokens(source, context), log)


def _security(listener: ListenerSecurity, mechanism: str) -> Security:
    try:
        return security_from_properties(listener.peer_properties(mechanism))
    except SecurityError as error:
        raise SecurityError(f"connecting to listener {listener.listener} of other nodes: {error}") from error
