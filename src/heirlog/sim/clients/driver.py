"""Runs the calls of `heirlog.client` in the simulation: on its network, with its clock and random numbers.

    Call --Send, SendAll, Pause--> env.send, env.call_later --answer, SendFailure, time--> Call ... --> done or failed

It decides nothing: `heirlog.client` decides which broker gets a request, what is retried, and when. Each running call
has a channel of its own, as the blocking driver gives it a connection, so no call waits behind the long poll of another
one. Free channels are reused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from heirlog.client.call import Call, Effect, Pause, Send, SendAll
from heirlog.client.cluster import Cluster
from heirlog.client.errors import Unsupported
from heirlog.env import SendFailure
from heirlog.protocol.errors import KafkaError
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Endpoint
from heirlog.sim.env import SimEnv

R = TypeVar("R")

SHORTEST_MS = 1
"""A timeout that rounds to 0 would end before anything is sent."""


def _unseen(_: Message) -> None:
    """A request that the caller does not follow."""


@dataclass(slots=True)  # not frozen for the sake of speed
class _Running(Generic[R]):
    call: Call[R]
    channel: str
    done: Callable[[R], None]
    failed: Callable[[Exception], None]
    sending: Callable[[Message], None]


class Driver:
    """The driver of one client. bootstrap: in any order; the broker that a client starts with is random."""

    def __init__(self, env: SimEnv, bootstrap: Sequence[Endpoint]) -> None:
        self._env = env
        self._channels: list[str] = []
        """Free ones."""
        self._opened = 0
        shuffled = list(bootstrap)
        env.random.shuffle(shuffled)
        self.cluster = Cluster(shuffled, self)

    # the core's clock

    def now_s(self) -> float:
        return self._env.now_ms() / 1000

    def random(self) -> float:
        return self._env.random.random()

    # what it carries out

    def run(
        self,
        call: Call[R],
        done: Callable[[R], None],
        failed: Callable[[Exception], None],
        sending: Callable[[Message], None] = _unseen,
    ) -> None:
        """`done` gets the result, or `failed` the KafkaError or OSError. sending: called with each request."""
        if not self._channels:
            self._opened += 1
            self._channels.append(f"call-{self._opened}")
        self._resume(_Running(call, self._channels.pop(), done, failed, sending), partial(next, call))

    def send(self, send: Send, channel: str, answered: Callable[[Any], None]) -> None:
        """One request on the connection of this name, in order with the others there; a response or an OSError."""
        timeout_ms = max(int(send.timeout_s * 1000), SHORTEST_MS)
        self._env.send(send.to, channel, send.message, lambda got: answered(_result(got)), timeout_ms, send.newest)

    def _resume(self, running: _Running[R], step: Callable[[], Effect]) -> None:
        try:
            effect = step()
        except StopIteration as end:
            self._channels.append(running.channel)
            running.done(end.value)
        except (KafkaError, OSError) as error:
            self._channels.append(running.channel)
            running.failed(error)
        else:
            self._carry_out(effect, running)

    def _carry_out(self, effect: Effect, running: _Running[R]) -> None:
        def resume(result: Any) -> None:
            self._resume(running, _given(running.call, result))

        if isinstance(effect, Pause):
            self._env.call_later(int(effect.seconds * 1000), lambda: resume(None))
        elif isinstance(effect, Send):
            running.sending(effect.message)
            self.send(effect, running.channel, resume)
        else:
            self._send_all(effect, running, resume)

    def _send_all(self, effect: SendAll, running: _Running[R], resume: Callable[[Any], None]) -> None:
        results: list[Any] = [None] * len(effect.sends)
        missing = len(results)

        def answered(index: int, result: Any) -> None:
            nonlocal missing
            results[index] = result
            missing -= 1
            if not missing:
                resume(results)

        if not results:
            self._env.call_later(0, lambda: resume(results))
        for index, send in enumerate(effect.sends):
            running.sending(send.message)
            self.send(send, running.channel, partial(answered, index))


def _given(call: Call[R], result: Any) -> Callable[[], Effect]:
    """The next step of a call that waited for `result`."""
    return partial(call.throw, result) if isinstance(result, OSError) else partial(call.send, result)


def _result(got: Any) -> Any:
    """What the core expects for an answer of the network."""
    if not isinstance(got, SendFailure):
        return got
    text = f"{got.kind}: {got.detail}"
    if got.kind == "timed-out":
        return TimeoutError(text)
    return Unsupported(text) if got.kind == "unsupported" else ConnectionError(text)
