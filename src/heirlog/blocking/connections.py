"""Carries out the client's calls with sockets: connections are kept while idle, borrowed, opened when there is none.

Who needs the order of answers for itself (a fetch that is one request ahead, a producer) borrows a connection and
gives it back when nothing is due on it. What is asked of whom and when is decided in `heirlog.client`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from heirlog.blocking.connection import Connection
from heirlog.client.call import Call, Effect, Pause, Send
from heirlog.client.cluster import Cluster, parse_bootstrap
from heirlog.client.security import PLAINTEXT, Security
from heirlog.protocol.types import Endpoint

if TYPE_CHECKING:
    from heirlog.blocking.credentials import Credentials

R = TypeVar("R")

IDLE_PER_BROKER = 4
SETUP_TIMEOUT_S = 10.0
"""Kafka's default of the client property socket.connection.setup.timeout.ms."""


class SystemClock:
    """The `Clock` of this process."""

    def now_s(self) -> float:
        return time.monotonic()

    def random(self) -> float:
        return random.random()


class Connections:
    """bootstrap: "host:port,host:port" or a sequence of "host:port". Raises ValueError, SecurityError."""

    def __init__(
        self, bootstrap: str | Sequence[str], *, security: Security = PLAINTEXT, client_id: str = "heirlog"
    ) -> None:
        self.cluster = Cluster(parse_bootstrap(bootstrap), SystemClock())
        self._credentials = None if security == PLAINTEXT else made_credentials(security)
        self._client_id = client_id
        self._idle: dict[Endpoint, list[Connection]] = {}

    def close(self) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    # calls

    def run(self, call: Call[R]) -> R:
        """The result of this call, or what it raises."""
        try:
            effect = next(call)
            while True:
                try:
                    result = self._carried_out(effect)
                except Exception as error:
                    effect = call.throw(error)
                else:
                    effect = call.send(result)
        except StopIteration as end:
            returned: R = end.value
            return returned
        finally:
            call.close()

    def _carried_out(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return self._ask(effect)
        if isinstance(effect, Pause):
            return time.sleep(effect.seconds)
        return self._ask_all(effect.sends)

    def _ask(self, send: Send) -> Any:
        deadline = time.monotonic() + send.timeout_s
        connection = self.borrow(send.to, send.timeout_s)
        try:
            version = connection.version_of(type(send.message), send.newest)
            return connection.request(send.message, version=version, timeout_s=max(deadline - time.monotonic(), 0.001))
        finally:
            self.give_back(send.to, connection)

    def _ask_all(self, sends: Sequence[Send]) -> list[Any]:
        """Each is a response or an OSError. All requests are sent before the first answer is taken."""
        began = time.monotonic()
        asked: list[Connection | OSError] = []
        try:
            for send in sends:
                asked.append(self._submitted(send))
            return [
                one if isinstance(one, OSError) else self._taken(one, began + send.timeout_s)
                for send, one in zip(sends, asked, strict=True)
            ]
        finally:
            for send, one in zip(sends, asked, strict=False):
                if isinstance(one, Connection):
                    self.give_back(send.to, one)

    def _submitted(self, send: Send) -> Connection | OSError:
        deadline = time.monotonic() + send.timeout_s
        try:
            connection = self.borrow(send.to, send.timeout_s)
        except OSError as error:
            return error
        try:
            version = connection.version_of(type(send.message), send.newest)
            connection.submit(send.message, version=version, timeout_s=max(deadline - time.monotonic(), 0.001))
        except OSError as error:
            self.give_back(send.to, connection)
            return error
        except BaseException:
            connection.close()
            raise
        return connection

    def _taken(self, connection: Connection, deadline: float) -> Any:
        try:
            return connection.take(timeout_s=max(deadline - time.monotonic(), 0.001))
        except OSError as error:
            return error

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
            setup_timeout_s=SETUP_TIMEOUT_S,
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


def made_credentials(security: Security) -> Credentials:
    """Commands on a plaintext port do not load what TLS and tokens need."""
    from heirlog.blocking.credentials import Credentials

    return Credentials(security)
