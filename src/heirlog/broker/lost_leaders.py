"""Brokers that have just gone, until clients have found the new leaders (`apis/metadata.py`).

    this broker's fetch connection to it closed  --> in doubt until the image fences it, at most for `DOUBT_MS`
    the image fences it                          --> still listed for `LISTED_MS`, for clients that name topics

* In doubt: a client whose connection to a dead leader closes asks another broker within the same millisecond. The
  controller has not fenced the dead one yet, and the answer would be the dead leader; librdkafka asks again only up to
  a second later. So an answer about what a broker in doubt leads waits until the controller has decided. A connection
  may also close while the broker lives: then the answer is a little late, and the same.
* Listed: where a broker vanishes from the list in the same answer that names the next leader, librdkafka (2.x) moves
  the partition and then undoes that, because it removes the old leader last. It asks again a second later. A client
  that tries a listed broker which is gone is refused at once, as it would have been before the broker was fenced.

Kafka answers at once, and lists no fenced broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Set
from typing import Any, Final, NamedTuple

from heirlog.context import Reply
from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.metadata.journal import ImageJournal
from heirlog.pending import Pending
from heirlog.protocol.types import BrokerId

DOUBT_MS: Final = 500
LISTED_MS: Final = 3_000
"""librdkafka asks once a second while a leader is away."""
WAITS_MAX: Final = 10_000
"""Limit of waiting answers; one more does not wait."""


class _Wait(NamedTuple):
    concerns: Callable[[Collection[BrokerId]], bool]
    answer: Callable[[], Any]


class LostLeaders:
    def __init__(self, env: Env) -> None:
        self._env = env
        self._live: set[BrokerId] = set()
        self._in_doubt: dict[BrokerId, Cancel] = {}
        self._listed_until_ms: dict[BrokerId, int] = {}
        self._waits: dict[Pending[Any], _Wait] = {}

    def connection_closed(self, leader: BrokerId) -> None:
        """The first failure after a fetch that the leader answered."""
        if leader in self._live and leader not in self._in_doubt:
            self._in_doubt[leader] = self._env.call_later(DOUBT_MS, lambda: self._is_decided(leader))

    def on_image(self, image: Image, changed: ImageJournal | None) -> None:
        """`changed`: what differs from the last call; None: anything may differ."""
        for broker_id in [*self._live, *image.brokers] if changed is None else list(changed.brokers):
            broker = image.brokers.get(broker_id)
            if broker is not None and not broker.fenced:
                self._live.add(broker_id)
                self._listed_until_ms.pop(broker_id, None)
                continue
            if broker_id in self._live and broker is not None and not broker.in_controlled_shutdown:
                self._listed_until_ms[broker_id] = self._env.now_ms() + LISTED_MS
            self._live.discard(broker_id)
            self._is_decided(broker_id)

    def listed(self) -> Set[BrokerId]:
        """The fenced brokers that clients still see."""
        if self._listed_until_ms:
            now_ms = self._env.now_ms()
            self._listed_until_ms = {b: until_ms for b, until_ms in self._listed_until_ms.items() if until_ms > now_ms}
        return self._listed_until_ms.keys()

    def when_decided(self, concerns: Callable[[Collection[BrokerId]], bool], answer: Callable[[], Any]) -> Reply[Any]:
        """`answer()`, once no broker is in doubt that it concerns.

        concerns: whether one of these brokers leads what the answer names.
        """
        if not self._in_doubt or len(self._waits) >= WAITS_MAX or not concerns(self._in_doubt.keys()):
            return answer()
        pending: Pending[Any] = Pending(lambda: self._forget(pending))
        self._waits[pending] = _Wait(concerns, answer)
        return pending

    def _forget(self, pending: Pending[Any]) -> None:
        self._waits.pop(pending, None)

    def _is_decided(self, broker_id: BrokerId) -> None:
        cancel = self._in_doubt.pop(broker_id, None)
        if cancel is None:
            return
        cancel()
        for pending, wait in list(self._waits.items()):
            if not self._in_doubt or not wait.concerns(self._in_doubt.keys()):
                del self._waits[pending]
                pending.complete(wait.answer())
