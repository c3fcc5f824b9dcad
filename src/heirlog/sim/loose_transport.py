"""A transport that does not keep what it carries to one connection.

TCP and both bodies of a node bind a message to a connection: what belongs to one that was closed, or to a process that
has ended, is never delivered. Here some messages are kept instead, and arrive later:

    a request      at whatever listens at its endpoint by then; its answer goes nowhere
    an answer      as the answer to the next request of the same kind by the same host, of its next incarnation

The connection that they were sent on carries nothing after them. Only answers are kept that say whom they answer
(`KEPT_ANSWERS`). Who receives another one, like that to a Fetch, could not know that it was not asked for: for those
the connection itself is the guard, with the order of what it carries.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, TypeAlias

from heirlog.protocol.messages import BrokerRegistrationRequest
from heirlog.sim.world import Process

NAMES_ITS_SENDER = frozenset(("broker_epoch", "incarnation_id", "replica_state"))
"""Fields of requests that say which incarnation of a node sends them; those requests are kept."""
KEPT_ANSWERS = (BrokerRegistrationRequest,)
"""The requests whose answers are kept."""
ANSWERS_PER_REQUEST = 20
"""A broker registers much more rarely than it fetches."""
LATE_MS = 8000
Answer: TypeAlias = tuple[Any, Callable[[Any], Any] | None]
"""As of `heirlog.sim.network.Network.hand_over_response`."""


class _KeptAnswer(NamedTuple):
    asked_by: Process
    answer: Answer


class LooseTransport:
    def __init__(
        self, random: Random, share: float, *, only: tuple[type, ...] = (), late_ms: tuple[int, int] = (100, LATE_MS)
    ) -> None:
        """share: of the messages that may be kept, how many are. only: of these requests, and no answers. late_ms: how
        late they arrive, from and to.
        """
        self._random = random
        self.share = share
        self._only = only
        self._late_ms = late_ms
        self._next_of: set[str] = set()
        self._answers: dict[tuple[str, type], _KeptAnswer] = {}
        self.late_requests = 0
        self.late_from = ""
        """The host whose request was kept last."""
        self.late_answers = 0

    def keep_next_answer(self, host: str) -> None:
        """Of those to this host."""
        self._next_of.add(host)

    def request_late_ms(self, client: Process, request: Any) -> int | None:
        """How late the request arrives, after its connection has closed; None: it is not kept."""
        may_be_kept = type(request) in self._only if self._only else not NAMES_ITS_SENDER.isdisjoint(request.FIELDS)
        if not may_be_kept or self._random.random() >= self.share:
            return None
        self.late_requests += 1
        self.late_from = client.host.name
        return self._random.randrange(*self._late_ms)

    def keeps_answer(self, client: Process, request: Any, answer: Answer) -> bool:
        """Whether the answer to this request does not arrive now."""
        if self._only or not isinstance(request, KEPT_ANSWERS):
            return False
        host = client.host.name
        if host not in self._next_of and self._random.random() >= ANSWERS_PER_REQUEST * self.share:
            return False
        self._next_of.discard(host)
        self._answers[host, type(request)] = _KeptAnswer(client, answer)
        return True

    def late_answer(self, client: Process, request: Any) -> Answer | None:
        """An answer that an earlier incarnation was to get, and that this request gets."""
        key = client.host.name, type(request)
        kept = self._answers.get(key)
        if kept is None or kept.asked_by is client:
            return None
        del self._answers[key]
        self.late_answers += 1
        return kept.answer
