"""Small files that wait for the disk take turns: each holds a descriptor open for so long.

Followers that receive the first records of new leaders write a leader-epoch-checkpoint for each of those partitions,
and thousands of descriptors at once are more than a process may have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 64
"""More than a disk needs to be busy."""


class Turns:
    """At most `at_once` have their turn; the others wait in the order in which they asked."""

    __slots__ = ("_free", "_handing_on", "_waiting")

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._handing_on = False
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, later: Callable[[], None]) -> bool:
        """True: it is your turn. False: `later` is called when it is. Each turn has to be given back."""
        if self._free:
            self._free -= 1
            return True
        self._waiting.append(later)
        return False

    def give_back(self) -> None:
        self._free += 1
        if self._handing_on:
            return  # one that gives back at once, called from the loop below
        self._handing_on = True
        try:
            while self._free and self._waiting:
                self._free -= 1
                self._waiting.popleft()()
        finally:
            self._handing_on = False
