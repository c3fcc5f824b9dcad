"""A limit of small files that are open at the same time because they wait for the disk.

Followers that receive the first records of new leaders write a leader-epoch-checkpoint for each of those partitions.
Each of these files holds a descriptor until it is flushed, and thousands at once are more than a process may have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 64
"""More than a disk needs to be busy."""


class OpenFileLimit:
    """At most `at_once` files are open; the others wait in the order in which they asked."""

    __slots__ = ("_free", "_handing_on", "_waiting")

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._handing_on = False
        self._waiting: deque[Callable[[], None]] = deque()

    def acquire(self, later: Callable[[], None]) -> bool:
        """True: the file may be opened. False: `later` is called once it may. Each acquisition has to be released."""
        if self._free:
            self._free -= 1
            return True
        self._waiting.append(later)
        return False

    def release(self) -> None:
        self._free += 1
        if self._handing_on:
            return  # called from the loop below, by one that releases at once
        self._handing_on = True
        try:
            while self._free and self._waiting:
                self._free -= 1
                self._waiting.popleft()()
        finally:
            self._handing_on = False
