"""Requests of a broker's coordinators and leaders to brokers. What is for the broker itself needs no connection.

    to another broker    over its listener for brokers
    to this broker       handled in the next turn of the event loop, answered in one of its own: no callback runs within
                         `send`, nor within the append that completes an answer

In a cluster of three, each third marker and each third question about a transaction is for the broker that sends it.
The handlers of these requests have a time limit of their own, so there is no second one here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from heirlog.env import Env, OnResult
from heirlog.pending import Pending
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import BrokerId, Endpoint


class BrokerRequests:
    def __init__(
        self,
        env: Env,
        own_id: BrokerId,
        endpoint_of: Callable[[BrokerId], Endpoint | None],
        handlers: Mapping[type[Message], Callable[[Any], Any]],
    ) -> None:
        """endpoint_of: of a broker's listener for other brokers. handlers: of the requests that this broker may send to
        itself; they return an answer or a Pending."""
        self._env = env
        self._own_id = own_id
        self._endpoint_of = endpoint_of
        self._handlers = handlers

    def reaches(self, broker: BrokerId) -> bool:
        """Whether the broker is registered with a listener for other brokers."""
        return self._endpoint_of(broker) is not None

    def send(self, broker: BrokerId, channel: str, request: Message, on_result: OnResult, timeout_ms: int) -> None:
        """As `Env.send`, to a broker that can be reached."""
        if broker == self._own_id:
            self._env.call_later(0, partial(self._handle, request, on_result))
            return
        endpoint = self._endpoint_of(broker)
        assert endpoint is not None, "the broker can be reached"
        self._env.send(endpoint, channel, request, on_result, timeout_ms)

    def _handle(self, request: Message, on_result: OnResult) -> None:
        reply = self._handlers[type(request)](request)
        if isinstance(reply, Pending):
            reply.then(lambda response: self._later(on_result, response))
        else:
            self._later(on_result, reply)

    def _later(self, on_result: OnResult, response: Any) -> None:
        self._env.call_later(0, partial(on_result, response))
