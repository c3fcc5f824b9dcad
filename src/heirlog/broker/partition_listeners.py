"""Events of partitions, for fetch sessions, which listen for as long as they exist.

An operation in a purgatory is registered and removed with each request, which costs something for every partition of
the request each time. A session registers once. From then on, only partitions with an event cost anything:

    mark(key)            the partition has changed: each listener looks at it with its next answer
    notify(key, event)   the same, and a request that waits may be answered now

Where several partitions change at once, all are marked before the first listener is notified: that listener may
answer at once, and its answer should hold the changes of all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Generic, Protocol, TypeVar


class PartitionEvent(Enum):
    LOG_APPENDED = "the leader's log has grown"
    HIGH_WATERMARK_MOVED = "the high watermark has moved"
    LEADERSHIP_CHANGED = "leader, leader epoch, replicas or the disk: whether and to whom it is served may have changed"


class PartitionListener(Protocol):
    def mark(self) -> None:
        """Look at the partition again with the next answer."""

    def on_event(self, event: PartitionEvent) -> None:
        """As `mark`, and see whether a waiting request has enough now."""


Key = TypeVar("Key", bound=Hashable)


class PartitionListeners(Generic[Key]):
    def __init__(self) -> None:
        # dicts, not sets: their order is the order of arrival
        self._listeners: dict[Key, dict[PartitionListener, None]] = {}

    def listen(self, key: Key, listener: PartitionListener) -> None:
        self._listeners.setdefault(key, {})[listener] = None

    def forget(self, key: Key, listener: PartitionListener) -> None:
        found = self._listeners[key]
        del found[listener]
        if not found:
            del self._listeners[key]

    def mark(self, key: Key) -> None:
        found = self._listeners.get(key)
        if found is not None:
            for listener in found:
                listener.mark()

    def mark_all(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.mark(key)

    def notify(self, key: Key, event: PartitionEvent) -> None:
        found = self._listeners.get(key)
        if found is None:
            return
        # a listener that is notified may answer, and an answer may remove listeners: iterate over a copy
        for listener in list(found):
            if listener in found:
                listener.on_event(event)
