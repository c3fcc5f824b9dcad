"""Whether a broker whose connection has closed is gone: does anything still listen where it listened?

    connection closed --ask--> refused           the process is gone: it is fenced now
                         ^     answered          a process is there, this one or its successor: the grace continues
                         +---- anything else     proves nothing; asked again, until the grace is over

Either sign alone proves nothing. A network device may reset a connection while the process lives, and then the port
still accepts connections. A port may be closed while the process serves others. Both together are what a kernel does
for a process that has ended. Silence, and an answer that does not come in time, never shorten anything: a machine that
hangs or is cut off from the controller keeps its whole session.

Fencing a living broker would lose no records (it is what a network partition does), but would move leaders for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from heirlog.env import Env, SendFailure
from heirlog.protocol.messages import ApiVersionsRequest
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint

CHANNEL: Final = "probe"
AGAIN_MS: Final = 20
"""A process that is being killed may close the connection of its heartbeats before the socket that listens."""


class ProcessProbe:
    """Asks at most one broker per closed connection at a time; a connection closes once per heartbeat at most.

    endpoint_of: where a registered broker listens for other brokers; None: it is not registered.
    is_in_doubt: whether the broker's connection is closed, and nothing was heard of this registration since.
    on_gone: called once nothing listens there any more.
    """

    def __init__(
        self,
        env: Env,
        endpoint_of: Callable[[BrokerId], Endpoint | None],
        is_in_doubt: Callable[[BrokerId, BrokerEpoch], bool],
        on_gone: Callable[[BrokerId, BrokerEpoch, Endpoint], None],
        timeout_ms: int,
    ) -> None:
        self._env = env
        self._endpoint_of = endpoint_of
        self._is_in_doubt = is_in_doubt
        self._on_gone = on_gone
        self._timeout_ms = timeout_ms

    def ask(self, broker: BrokerId, epoch: BrokerEpoch) -> None:
        endpoint = self._endpoint_of(broker)
        if endpoint is None or not self._is_in_doubt(broker, epoch):
            return

        def answered(result: Any) -> None:
            if not isinstance(result, SendFailure) or not self._is_in_doubt(broker, epoch):
                return
            if result.is_refused:
                self._on_gone(broker, epoch, endpoint)
            else:
                self._env.call_later(AGAIN_MS, lambda: self.ask(broker, epoch))

        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        self._env.send(endpoint, CHANNEL, request, answered, self._timeout_ms)
