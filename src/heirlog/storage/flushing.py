"""One flush of a log: it flushes several files and the directory, and then moves the recovery point.

    requested --every part flushed--> done        recovery point := target, unless it is there already
        |------a part fails---------> failed      the log is unusable: the kernel will not write the lost pages again.
                                                  Reported at once: otherwise the next flush could ask for that part
                                                  again

A truncation during the flush lowers the target: the bytes that were flushed at these offsets are removed, and the log
may have other bytes there when the flush ends.
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
        """The callback of one more part to wait for. All parts are requested before any can finish (see `Env`)."""
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
