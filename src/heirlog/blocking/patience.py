"""How long to try again, and how long to wait in between: bounded, growing, and not in step with other clients.

When the time is over, the last failure is told. A try that the end of the time has cut short says less than what failed
before it, and is told only where nothing else did.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
JITTER = 0.2


class Patience:
    """timeout_s: since the start, or since `progress`."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.progress()

    def progress(self) -> None:
        """Something succeeded: the time begins anew."""
        self.deadline = time.monotonic() + self.timeout_s
        self._pause_s = FIRST_PAUSE_S
        self._failure: Exception | None = None

    def left_s(self) -> float:
        """At least a little, so that it can be used as a timeout: `again` is what ends things."""
        return max(self.deadline - time.monotonic(), 0.001)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.deadline

    def again(self, failure: Exception) -> None:
        """Pause before the next try. Raises what failed when there is no time for one."""
        if self._failure is None or not isinstance(failure, TimeoutError):
            self._failure = failure
        pause_s = self._pause_s * random.uniform(1 - JITTER, 1 + JITTER)
        if time.monotonic() + pause_s >= self.deadline:
            raise self._failure
        time.sleep(pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """A try with the time that is left: if that runs out, what failed before is raised."""
        try:
            yield
        except TimeoutError as error:
            if self._failure is None:
                raise
            raise self._failure from error
