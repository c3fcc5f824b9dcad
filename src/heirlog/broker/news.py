"""News of partitions, for those who listen for as long as they live: fetch sessions.

A purgatory's wait is registered and forgotten with each request, which costs every partition of the request each time.
A session registers once, and then only what has news costs anything:

    mark(key)         something about the partition has changed: whoever listens looks at it with its next answer
    tell(key, news)   the same, and a request that waits may end now

Where several partitions change in one go, all are marked before the first is told: the first that is told may answer,
and its answer should carry them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum
from typing import Generic, Protocol, TypeVar


class News(Enum):
    LOG_GREW = "the leader's log has grown"
    WATERMARK_MOVED = "the high watermark has moved"
    SERVED_ANEW = "leader, leader epoch, replicas or the disk: whether and to whom it is served may have changed"


class Listener(Protocol):
    def mark(self) -> None:
        """Look at the partition again with the next answer."""

    def hear(self, news: News) -> None:
        """After `mark`: see whether a waiting request has enough now."""


Key = TypeVar("Key", bound=Hashable)


class Exchange(Generic[Key]):
    def __init__(self) -> None:
        # dicts, not sets: their order is the order of arrival
        self._listeners: dict[Key, dict[Listener, None]] = {}

    def listen(self, key: Key, listener: Listener) -> None:
        self._listeners.setdefault(key, {})[listener] = None

    def forget(self, key: Key, listener: Listener) -> None:
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

    def tell(self, key: Key, news: News) -> None:
        found = self._listeners.get(key)
        if found is None:
            return
        # who hears may answer, and answering may end listeners: look at a copy
        for listener in list(found):
            if listener in found:
                listener.mark()
                listener.hear(news)
