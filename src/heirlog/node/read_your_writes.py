"""After a client has changed something, every broker that it asks knows the change.

A change is made when its records are committed. Without this module a client that creates a topic and describes it at
once could get the answer that it does not exist, from the broker that received the request or from another one.

    controller   records appended -> committed -> every unfenced broker has fetched them -> the answer leaves
    broker       (that forwarded the request) the answer came -> its own image holds the change -> the answer leaves

Each of the two waits for at most `WAIT_MS`: a broker that is slow, paused or dead and not fenced yet delays only
changes, and not longer. A request that appended no record does not wait.

A broker says with each fetch of the metadata log which high watermark it has applied (KIP-1166). It fetches again as
soon as it has applied what came, so that all this takes one round trip.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from heirlog.context import Reply
from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending
from heirlog.protocol.types import BrokerId

WAIT_MS: Final = 500
WAITS_MAX: Final = 10_000
"""Limit of waiting answers; one more does not wait."""


class MetadataPropagation:
    """On a controller: which unfenced brokers have not applied which change yet.

    Each broker has a queue of the waits it keeps, in the order of their end offsets, since appends are in order. So a
    fetch looks at the waits that it ends and one more, however many wait for a slow broker.
    """

    def __init__(self, env: Env, image: Callable[[], Image], node_id: int) -> None:
        """node_id: this node's, which needs no fetch to know what it has committed itself."""
        self._env = env
        self._image = image
        self._node_id = node_id
        self._waits: set[_Wait] = set()
        self._queues: dict[int, OrderedDict[_Wait, None]] = {}
        """By broker, without empty ones."""

    def when_all_know(self, answer: Reply[Any], end_offset: int) -> Reply[Any]:
        """`answer`, once it is there and every broker that is unfenced now has applied all below `end_offset`."""
        behind = {b.id for b in self._image().brokers.values() if not b.fenced and b.id != self._node_id}
        if not behind or len(self._waits) >= WAITS_MAX:
            return answer

        def abandoned() -> None:
            self._forget(wait)
            if isinstance(answer, Pending):
                answer.abandon()

        wait = _Wait(end_offset, behind, abandoned)
        self._waits.add(wait)
        for broker_id in behind:
            self._queues.setdefault(broker_id, OrderedDict())[wait] = None
        if isinstance(answer, Pending):
            answer.then(partial(self._committed, wait))
        else:
            self._committed(wait, answer)
        return wait.answer

    def when_all_know_later(self, answer: Pending[Any], end_offset: Callable[[], int]) -> Pending[Any]:
        """The same for a change whose last records are not appended yet; end_offset: called when the answer comes."""
        under_way: Pending[Any] = answer
        known: Pending[Any] = Pending(lambda: under_way.abandon())

        def committed(response: Any) -> None:
            nonlocal under_way
            reply = self.when_all_know(response, end_offset())
            if isinstance(reply, Pending):
                under_way = reply
                reply.then(known.complete)
            else:
                known.complete(reply)

        answer.then(committed)
        return known

    def fetched(self, replica_id: int, high_watermark: int) -> None:
        """A replica of the metadata log has applied everything below `high_watermark`."""
        queue = self._queues.get(replica_id)
        while queue and (wait := next(iter(queue))).end_offset <= high_watermark:
            self._knows(wait, replica_id)

    def brokers_changed(self) -> None:
        """Stop waiting for brokers that are fenced or removed. Looks at each broker that is behind."""
        brokers = self._image().brokers
        for broker_id in [b for b in self._queues if b not in brokers or brokers[BrokerId(b)].fenced]:
            queue = self._queues.get(broker_id)
            while queue:
                self._knows(next(iter(queue)), broker_id)

    def _knows(self, wait: _Wait, broker_id: int) -> None:
        wait.behind.discard(broker_id)
        self._unqueue(wait, broker_id)
        self._look_at(wait)

    def _committed(self, wait: _Wait, response: Any) -> None:
        wait.response = response
        wait.cancel = self._env.call_later(WAIT_MS, partial(self._over, wait))
        self._look_at(wait)

    def _look_at(self, wait: _Wait) -> None:
        if wait.response is not None and not wait.behind:
            self._over(wait)

    def _over(self, wait: _Wait) -> None:
        if self._forget(wait):
            wait.answer.complete(wait.response)

    def _forget(self, wait: _Wait) -> bool:
        """False: it was over already."""
        if wait not in self._waits:
            return False
        self._waits.remove(wait)
        for broker_id in wait.behind:
            self._unqueue(wait, broker_id)
        wait.end()
        return True

    def _unqueue(self, wait: _Wait, broker_id: int) -> None:
        queue = self._queues[broker_id]
        del queue[wait]
        if not queue:
            del self._queues[broker_id]


class LocalImageWaits:
    """On a broker: answers to what it forwarded that wait for its own image."""

    def __init__(self, env: Env, applied_offset: Callable[[], int]) -> None:
        """applied_offset: of the last record in the image that this node's clients see."""
        self._env = env
        self._applied_offset = applied_offset
        self._waits: dict[_Wait, Callable[[], None]] = {}

    def when_applied(self, offset: int, fn: Callable[[], None]) -> None:
        """Call `fn` once the image holds the record at `offset`, or after `WAIT_MS`."""
        if offset <= self._applied_offset() or len(self._waits) >= WAITS_MAX:
            fn()
            return
        wait = _Wait(offset + 1, set())
        self._waits[wait] = fn
        wait.cancel = self._env.call_later(WAIT_MS, partial(self._over, wait))

    def applied(self) -> None:
        """The image has changed."""
        if self._waits:
            end_offset = self._applied_offset() + 1
            for wait in [wait for wait in self._waits if wait.end_offset <= end_offset]:
                self._over(wait)

    def _over(self, wait: _Wait) -> None:
        fn = self._waits.pop(wait, None)
        if fn is not None:
            wait.end()
            fn()


class _Wait:
    __slots__ = ("answer", "behind", "cancel", "end_offset", "response")

    def __init__(self, end_offset: int, behind: set[Any], on_abandon: Callable[[], None] | None = None) -> None:
        self.end_offset = end_offset
        self.behind = behind
        self.answer: Pending[Any] = Pending(on_abandon)
        self.response: Any = None
        self.cancel: Cancel | None = None

    def end(self) -> None:
        if self.cancel is not None:
            self.cancel()
