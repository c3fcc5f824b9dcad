"""One flush of a log: several files and the directory, done when all are, and a recovery point that waits for it.

    requested --every part flushed--> done        recovery point := target, unless it is there already
        |------a part fails---------> failed      the log is unusable: what the kernel dropped it will not write again.
                                                  Told at once: until it is, the next flush would ask for that part anew

A truncation that happens meanwhile lowers the target: the bytes that were flushed at these offsets are gone, and others
may stand there by the time the flush ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

OnFlushed: TypeAlias = Callable[[OSError | None], None]


class PendingFlush:
    __slots__ = ("_has_failed", "_on_done", "_parts", "target")

    def __init__(self, target: int, on_done: Callable[[PendingFlush, OSError | None], None]) -> None:
        self.target = target
        self._parts = 0
        self._has_failed = False
        self._on_done = on_done

    def part(self) -> OnFlushed:
        """The callback of one more thing to wait for. All are asked for before any can answer (see `Env`)."""
        self._parts += 1
        return self._part_done

    def _part_done(self, error: OSError | None) -> None:
        self._parts -= 1
        if self._has_failed:
            return
        if error is not None:
            self._has_failed = True
            self._on_done(self, error)
        elif self._parts == 0:
            self._on_done(self, None)
