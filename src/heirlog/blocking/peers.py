"""The brokers of a cluster as connections: kept while idle, borrowed by one user at a time, opened when there is none.

Who needs the order of answers for itself (a fetch that is one request ahead, a producer) borrows a connection and
gives it back when nothing is due on it. Any broker answers for the cluster: the last one that did is asked first, then
the others that are known, then the bootstrap servers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heirlog.blocking.connection import Connection
from heirlog.blocking.patience import Patience
from heirlog.client.cluster_view import ClusterView
from heirlog.client.errors import Unsupported
from heirlog.client.security import PLAINTEXT, Security
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint, endpoint_from_text

if TYPE_CHECKING:
    from heirlog.blocking.credentials import Credentials

IDLE_PER_BROKER = 4


class Peers:
    """bootstrap: "host:port,host:port" or a sequence of "host:port". Raises ValueError, SecurityError."""

    def __init__(
        self, bootstrap: str | Sequence[str], *, security: Security = PLAINTEXT, client_id: str = "heirlog"
    ) -> None:
        self.view = ClusterView()
        self._bootstrap = parse_bootstrap(bootstrap)
        self._credentials = None if security == PLAINTEXT else made_credentials(security)
        self._client_id = client_id
        self._idle: dict[Endpoint, list[Connection]] = {}
        self._answered_last: Endpoint | None = None

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    # connections

    def borrow(self, endpoint: Endpoint, timeout_s: float) -> Connection:
        """Raises OSError, AuthenticationFailed."""
        idle = self._idle.get(endpoint, [])
        while idle:
            connection = idle.pop()
            if not connection.stale():
                return connection
            connection.close()
        return Connection(
            endpoint.host,
            endpoint.port,
            timeout_s=timeout_s,
            client_id=self._client_id,
            credentials=self._credentials,
        )

    def give_back(self, endpoint: Endpoint, connection: Connection) -> None:
        """Closed instead of kept if anything is due on it."""
        idle = self._idle.setdefault(endpoint, [])
        if connection.in_flight or len(idle) >= IDLE_PER_BROKER or connection.stale():
            connection.close()
        else:
            idle.append(connection)

    def ask(self, endpoint: Endpoint, message: Message, timeout_s: float, newest: int | None = None) -> Any:
        """The answer of this broker. newest: speak no later version. Raises OSError, AuthenticationFailed."""
        deadline = time.monotonic() + timeout_s
        connection = self.borrow(endpoint, timeout_s)
        try:
            version = connection.version_of(type(message))
            return connection.request(
                message,
                version=version if newest is None else min(version, newest),
                timeout_s=max(deadline - time.monotonic(), 0.001),
            )
        finally:
            self.give_back(endpoint, connection)

    # any broker

    def ask_any(self, message: Message, timeout_s: float, try_s: float | None = None) -> Any:
        """The answer of the first broker that gives one. try_s: wait no longer for each. Raises OSError when none did
        in time, AuthenticationFailed."""
        patience = Patience(timeout_s)
        failure: OSError | None = None
        while True:
            for endpoint in self._servers():
                try:
                    response = self.ask(endpoint, message, min(patience.left_s(), try_s or timeout_s))
                except Unsupported:
                    raise
                except OSError as error:
                    # a try that was cut short at the end says less than what happened before
                    if failure is None or not isinstance(error, TimeoutError):
                        failure = error
                else:
                    self._answered_last = endpoint
                    return response
            patience.again(failure or TimeoutError("no server to ask"))

    def metadata(self, topics: Sequence[str] | None, timeout_s: float, *, create: bool = False) -> MetadataResponse:
        """Brokers, and these topics (None: all). create: a broker that creates topics by itself may do so."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        # a broker that hangs must not take all the time that there is
        response: MetadataResponse = self.ask_any(request, timeout_s, max(timeout_s / 4, 1.0))
        return response

    def look(self, topics: Sequence[str] | None, timeout_s: float) -> dict[str, ErrorCode]:
        """Renew `view`; the topics that were refused. Raises OSError, AuthenticationFailed."""
        return self.view.learn(self.metadata(topics, timeout_s), of_all=topics is None)

    def look_elsewhere(self, topics: Sequence[str], timeout_s: float, *, create: bool = False) -> dict[str, ErrorCode]:
        """`look`, but ask another broker than last time if there is one: that one may be behind."""
        others = [endpoint for endpoint in self._servers() if endpoint != self._answered_last]
        self._answered_last = others[0] if others else self._answered_last
        return self.view.learn(self.metadata(topics, timeout_s, create=create))

    def _servers(self) -> list[Endpoint]:
        """Without repeats, the most promising first."""
        last = [self._answered_last] if self._answered_last is not None else []
        return list(dict.fromkeys([*last, *self.view.brokers.values(), *self._bootstrap]))


def made_credentials(security: Security) -> Credentials:
    """Commands on a plaintext port do not load what TLS and tokens need."""
    from heirlog.blocking.credentials import Credentials

    return Credentials(security)


def parse_bootstrap(bootstrap: str | Sequence[str]) -> list[Endpoint]:
    """Raises ValueError naming what is not host:port."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else bootstrap
    return [endpoint_from_text(text.strip()) for text in texts]
