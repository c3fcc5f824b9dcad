"""A client that has changed something may ask any broker next, and finds it.

A change is decided when its records are committed. Without more a client that creates a topic and asks for it at once
may be told that it does not exist: by the broker that took the request, or by another one.

    controller   records appended -> committed -> every unfenced broker has fetched them -> the answer leaves
    broker       (that forwarded the request) the answer came -> its own image holds the change -> the answer leaves

Each of the two waits `WAIT_MS` at most: a broker that is slow, paused or dead and not fenced yet delays changes, and
nothing else, by so much. Nothing waits for a request that appended no record.

A broker says with each fetch of the metadata log which high watermark it has applied (KIP-1166). It fetches again as
soon as it has applied what came, so that all this takes one round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from heirlog.env import Cancel, Env
from heirlog.metadata.image import Image
from heirlog.pending import Pending

WAIT_MS: Final = 500
WAITS_MAX: Final = 10_000
"""One more does not wait."""
CHANGES: Final = frozenset((19, 20, 30, 31, 33, 37, 43, 44, 45, 57, 64))
"""CreateTopics, DeleteTopics, CreateAcls, DeleteAcls, AlterConfigs, CreatePartitions, ElectLeaders,
IncrementalAlterConfigs, AlterPartitionReassignments, UpdateFeatures, UnregisterBroker: what appends records because a
client asks for it."""


class EveryBroker:
    """On a controller: which unfenced brokers have yet to apply which change."""

    def __init__(self, env: Env, image: Callable[[], Image], node_id: int) -> None:
        """node_id: this node's, which needs no fetch to know what it has committed itself."""
        self._env = env
        self._image = image
        self._node_id = node_id
        self._waits: dict[_Wait, None] = {}

    def knows_first(self, answer: Any, end_offset: int) -> Any:
        """`answer`, once it is there and every broker that is unfenced now has applied all below `end_offset`."""
        behind = {b.id for b in self._image().brokers.values() if not b.fenced and b.id != self._node_id}
        if not behind or len(self._waits) >= WAITS_MAX:
            return answer
        wait = _Wait(end_offset, set(behind))
        self._waits[wait] = None
        if isinstance(answer, Pending):
            wait.answer.on_abandon = partial(self._abandoned, wait, answer)
            answer.then(partial(self._committed, wait))
        else:
            self._committed(wait, answer)
        return wait.answer

    def fetched(self, replica_id: int, high_watermark: int) -> None:
        """A replica of the metadata log has applied everything below `high_watermark`."""
        for wait in list(self._waits):
            if wait.end_offset <= high_watermark and replica_id in wait.behind:
                wait.behind.discard(replica_id)
                self._look_at(wait)

    def brokers_changed(self) -> None:
        """A broker that is fenced, or gone, is waited for no longer."""
        if not self._waits:
            return
        brokers = self._image().brokers
        for wait in list(self._waits):
            wait.behind = {b for b in wait.behind if b in brokers and not brokers[b].fenced}
            self._look_at(wait)

    def _committed(self, wait: _Wait, response: Any) -> None:
        wait.response = response
        wait.cancel = self._env.call_later(WAIT_MS, partial(self._over, wait))
        self._look_at(wait)

    def _look_at(self, wait: _Wait) -> None:
        if wait.response is not None and not wait.behind:
            self._over(wait)

    def _over(self, wait: _Wait) -> None:
        if self._waits.pop(wait, wait) is None:
            wait.end()
            wait.answer.complete(wait.response)

    def _abandoned(self, wait: _Wait, answer: Pending[Any]) -> None:
        self._waits.pop(wait, None)
        wait.end()
        answer.abandon()


class OwnImage:
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

    def __init__(self, end_offset: int, behind: set[Any]) -> None:
        self.end_offset = end_offset
        self.behind = behind
        self.answer: Pending[Any] = Pending()
        self.response: Any = None
        self.cancel: Cancel | None = None

    def end(self) -> None:
        if self.cancel is not None:
            self.cancel()
