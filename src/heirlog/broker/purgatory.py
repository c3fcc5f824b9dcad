"""Requests that wait for a partition: produce for its high watermark, fetch for more records.

    watch --check_and_complete(key)--> the wait looks at that key; satisfied --> forgotten
      |  ---deadline---> expired --> forgotten
      \\---remove-------> forgotten (its connection closed)

One wait may watch many keys. Waking touches only the waits of that key. There is one timer for all waits. It uses a
heap of deadlines, and only the head is registered with `Env`. Entries of satisfied waits stay until they reach the
head, or until they are most of the heap. The number of waits is limited: beyond it a request is answered as if it had
timed out, so that many long polls cannot use unlimited memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from heirlog.env import Cancel, Env

Key = TypeVar("Key", bound=Hashable)

_SWEEP_AT_LEAST = 1024


class DelayedOperation(Protocol[Key]):
    """A waiting request; its class defines what satisfies it."""

    number: int
    """Set by the purgatory; orders the waits of a key by age. -1 before."""

    @property
    def keys(self) -> Sequence[Key]:
        """The keys that it waits for, each once. Read when the wait begins; later changes have no effect."""

    def try_complete(self, key: Key) -> bool:
        """`key` has changed. True if the request has been answered."""

    def on_expiration(self) -> None:
        """Timed out: answer now."""


class Purgatory(Generic[Key]):
    def __init__(self, env: Env, limit: int = 100_000) -> None:
        self._env = env
        self._limit = limit
        self._watchers: dict[Key, dict[int, DelayedOperation[Key]]] = {}
        self._waiting: dict[int, tuple[DelayedOperation[Key], Sequence[Key]]] = {}
        self.watched = 0
        """Number of waits, each counted once per key."""
        self.expired = 0
        """Number of timeouts since the start."""
        self._deadlines: list[tuple[int, int]] = []
        self._next_number = 0
        self._cancel_timer: Cancel | None = None
        self._timer_at_ms = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= self._limit

    def watch(self, wait: DelayedOperation[Key], timeout_ms: int) -> None:
        """Keep `wait` until it is satisfied, removed, or `timeout_ms` have passed. The caller checked `is_full`."""
        number = self._next_number
        self._next_number = number + 1
        wait.number = number
        keys = wait.keys
        self._waiting[number] = wait, keys
        if keys:
            self.watched += len(keys)
            watchers = self._watchers
            for key in keys:
                found = watchers.get(key)
                if found is None:
                    watchers[key] = {number: wait}
                else:
                    found[number] = wait
        deadline_ms = self._env.now_ms() + timeout_ms
        heappush(self._deadlines, (deadline_ms, number))
        if self._cancel_timer is None or deadline_ms < self._timer_at_ms:
            self._arm()

    def check_and_complete(self, key: Key) -> None:
        found = self._watchers.get(key)
        if found is None:
            return
        # a woken wait may answer, and its answer may make other requests of its connection run: look at a copy
        for wait in list(found.values()):
            if wait.number in self._waiting and wait.try_complete(key):
                self.remove(wait)

    def remove(self, wait: DelayedOperation[Key]) -> None:
        """Remove the wait; harmless if it is removed already."""
        number = wait.number
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        keys = waiting[1]
        if keys:
            self.watched -= len(keys)
            for key in keys:
                found = self._watchers[key]
                del found[number]
                if not found:
                    del self._watchers[key]
        if len(self._deadlines) > _SWEEP_AT_LEAST and len(self._deadlines) > 4 * len(self._waiting):
            self._deadlines = [entry for entry in self._deadlines if entry[1] in self._waiting]
            heapify(self._deadlines)

    def _arm(self) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
        if self._deadlines:
            self._timer_at_ms = self._deadlines[0][0]
            self._cancel_timer = self._env.call_later(max(0, self._timer_at_ms - self._env.now_ms()), self._on_timer)

    def _on_timer(self) -> None:
        self._cancel_timer = None
        now_ms = self._env.now_ms()
        expired = []
        deadlines, waiting = self._deadlines, self._waiting
        # most entries are of satisfied waits: as little as possible for each of them
        while deadlines:
            deadline_ms, number = deadlines[0]
            if number in waiting:
                if deadline_ms > now_ms:
                    break
                expired.append(waiting[number][0])
            heappop(deadlines)
        for wait in expired:
            if wait.number in self._waiting:
                self.remove(wait)
                self.expired += 1
                wait.on_expiration()
        if self._cancel_timer is None:
            self._arm()
