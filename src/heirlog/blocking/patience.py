"""How long to try again, and how long to wait in between: bounded, growing, and not in step with other clients."""

from __future__ import annotations

import random
import time

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

    def left_s(self) -> float:
        """At least a little, so that it can be used as a timeout: `again` is what ends things."""
        return max(self.deadline - time.monotonic(), 0.001)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.deadline

    def again(self, failure: Exception) -> None:
        """Pause before the next try. Raises `failure` when there is no time for one."""
        pause_s = self._pause_s * random.uniform(1 - JITTER, 1 + JITTER)
        if time.monotonic() + pause_s >= self.deadline:
            raise failure
        time.sleep(pause_s)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
