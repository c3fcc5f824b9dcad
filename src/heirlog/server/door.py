"""What a client must pass before a listener serves it: TLS, SASL, both or nothing.

    OPEN              PLAINTEXT: the stream of `stream.py`, no deadline
    Door(context)     TLS: the stream of `tls_stream.py`; `ssl` is imported only where a listener wants it
    Door(limit)       SASL: frames of at most `sasl.server.max.receive.size` until the client is authenticated

All of it has to be done within `heirlog.authentication.timeout.ms`, however fast the bytes come. A context is replaced
as a whole (`use`): connections that exist keep theirs.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from heirlog.client.security import Security, SecurityError, security_from_properties
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.metadata.security_configs import OF_SERVERS
from heirlog.server.stream import FrameStream

if TYPE_CHECKING:
    import ssl

    from heirlog.server.tls_stream import HandshakeTurns


class Door:
    def __init__(
        self,
        timeout_s: float = 0.0,
        first_frame_limit: int | None = None,
        context: ssl.SSLContext | None = None,
        turns: HandshakeTurns | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self.context = context
        self._first_frame_limit = first_frame_limit
        self._turns = turns

    def stream(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, staging: memoryview, frame_limit: int, receiver: Any
    ) -> FrameStream:
        if self._first_frame_limit is not None:
            frame_limit = min(frame_limit, self._first_frame_limit)
        if self.context is None:
            return FrameStream(loop, sock, staging, frame_limit, receiver)
        from heirlog.server.tls_stream import TlsStream

        assert self._turns is not None, "made with the context"
        return TlsStream(loop, sock, staging, frame_limit, receiver, self.context, self._turns)


OPEN: Final = Door()
Stores: TypeAlias = Mapping[str, Mapping[str, str]]
"""By listener, key and trust stores as Kafka's configurations without the listener's prefix."""
NO_STORES: Final[Stores] = {}


class Doors:
    """Those of a node's listeners. Raises SecurityError for stores that cannot be read."""

    def __init__(self, loop: asyncio.AbstractEventLoop, config: StaticConfig) -> None:
        self._config = config
        self.by_listener: dict[str, Door] = {}
        timeout_s = config.int("heirlog.authentication.timeout.ms") / 1000
        for security in self._guarded():
            turns: HandshakeTurns | None = None
            if security.uses_tls:
                from heirlog.server.tls_stream import HandshakeTurns

                # of its own: unauthenticated clients at one listener do not hold up nodes at another
                turns = HandshakeTurns(loop)
            self.by_listener[security.listener] = Door(
                timeout_s,
                security.value("sasl.server.max.receive.size") if security.uses_sasl else None,
                server_context_of(security) if security.uses_tls else None,
                turns,
            )

    def securities(self, stores: Stores = NO_STORES) -> dict[str, ListenerSecurity]:
        """Of the listeners with TLS. stores: by listener, what differs from the file."""
        return {
            security.listener: security.with_stores(stores.get(security.listener, {}))
            for security in self._guarded()
            if security.uses_tls
        }

    def contexts(self, stores: Stores = NO_STORES) -> dict[str, ssl.SSLContext]:
        """By listener, made from stores that are read again. Raises SecurityError."""
        return {listener: server_context_of(security) for listener, security in self.securities(stores).items()}

    def use(self, contexts: Mapping[str, ssl.SSLContext]) -> None:
        """For new connections."""
        for listener, context in contexts.items():
            self.by_listener[listener].context = context

    def _guarded(self) -> list[ListenerSecurity]:
        config = self._config
        listeners = config.all_listeners if config.is_broker else config.controller_listeners
        found = [config.security(listener.name) for listener in listeners]
        return [security for security in found if security.uses_tls or security.uses_sasl]


def server_context_of(security: ListenerSecurity) -> ssl.SSLContext:
    """Raises SecurityError, which names the listener."""
    from heirlog.tls.contexts import server_context

    try:
        return server_context(
            stores_of(security),
            security.value("ssl.client.auth"),
            security.value("ssl.cipher.suites"),
        )
    except SecurityError as error:
        raise SecurityError(f"listener {security.listener}: {error}") from error


def stores_of(security: ListenerSecurity) -> Security:
    """Raises SecurityError."""
    found = {name: text for name, text in security.properties.items() if name.startswith("ssl.")}
    return security_from_properties(
        {name: text for name, text in found.items() if name not in OF_SERVERS} | {"security.protocol": "SSL"}
    )
