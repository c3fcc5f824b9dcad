"""Whether a broker whose connection has closed is gone: does anything still listen where it listened?

    connection closed --ask--> refused           the process is gone: it is fenced now
                         ^     answered          a process is there, this one or its successor: the grace continues
                         +---- anything else     proves nothing; asked again, until the grace is over

Either sign alone proves nothing. A network device may reset a connection while the process lives, and then the port
still accepts connections. A port may be closed while the process serves others. Both together are what a kernel does
for a process that has ended. Silence, and an answer that does not come in time, never shorten anything: a machine that
hangs or is cut off from the controller keeps its whole session.

A refusal is the kernel's of that machine only if nothing between here and there speaks for it. A firewall that lets no
controller reach the port refuses always; one that translates addresses refuses from its own. So a refusal counts where

    the broker has answered this controller before, since it registered (asked with its first heartbeats), and
    the address that refuses is the one from which the heartbeats came

Elsewhere the grace passes, which is what happens without a probe. What remains: a device in between that refuses, in
the name of the broker, what it let through before, and resets the connection of the heartbeats in the same moment.

Fencing a living broker would lose no records (it is what a network partition does), but would move leaders for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from heirlog.env import Env, SendFailure
from heirlog.metadata.address import kafka_host
from heirlog.protocol.messages import ApiVersionsRequest
from heirlog.protocol.software import SOFTWARE_NAME, SOFTWARE_VERSION
from heirlog.protocol.types import BrokerEpoch, BrokerId, Endpoint

CHANNEL: Final = "probe"
AGAIN_MS: Final = 20
"""A process that is being killed may close the connection of its heartbeats before the socket that listens."""


@dataclass(slots=True)
class _Reached:
    """What is known of the way to one registration."""

    epoch: BrokerEpoch
    host: str
    """From which its newest heartbeat came."""
    has_answered: bool = False
    is_asked: bool = False


class ProcessProbe:
    """Asks at most one broker per closed connection at a time; a connection closes once per heartbeat at most.

    endpoint_of: where a registered broker listens for other brokers; None: it is not registered.
    is_in_doubt: whether the broker's connection is closed, and nothing was heard of this registration since.
    on_gone: called once nothing listens there any more.
    timeout_ms: for an answer; negative: nothing is ever asked.
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
        self._reached: dict[BrokerId, _Reached] = {}

    def heard(self, broker: BrokerId, epoch: BrokerEpoch, host: str) -> None:
        """A heartbeat of this registration came from `host`: find out whether the broker can be asked from here."""
        reached = self._reached.get(broker)
        if reached is None or reached.epoch != epoch:
            reached = self._reached[broker] = _Reached(epoch, host)
        reached.host = host
        endpoint = self._endpoint_of(broker)
        if reached.has_answered or reached.is_asked or endpoint is None or self._timeout_ms < 0:
            return

        def answered(result: Any) -> None:
            reached.is_asked = False
            reached.has_answered = not isinstance(result, SendFailure)

        reached.is_asked = True
        self._send(endpoint, answered)

    def forget_all(self) -> None:
        """This controller is active no more."""
        self._reached.clear()

    def ask(self, broker: BrokerId, epoch: BrokerEpoch) -> None:
        endpoint = self._endpoint_of(broker)
        if endpoint is None or not self._is_in_doubt(broker, epoch):
            return

        def answered(result: Any) -> None:
            if not isinstance(result, SendFailure) or not self._is_in_doubt(broker, epoch):
                return
            if not result.refused_by:
                self._env.call_later(AGAIN_MS, lambda: self.ask(broker, epoch))
            elif self._is_proof(broker, epoch, result.refused_by):
                self._on_gone(broker, epoch, endpoint)

        self._send(endpoint, answered)

    def _is_proof(self, broker: BrokerId, epoch: BrokerEpoch, refused_by: str) -> bool:
        reached = self._reached.get(broker)
        if reached is None or reached.epoch != epoch or not reached.has_answered:
            return False
        return kafka_host(refused_by) == kafka_host(reached.host)

    def _send(self, endpoint: Endpoint, on_result: Callable[[Any], None]) -> None:
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        self._env.send(endpoint, CHANNEL, request, on_result, self._timeout_ms)
