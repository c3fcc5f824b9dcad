"""How long to try again, and how long to pause in between: bounded, growing, and not in step with other clients.

At the deadline the last failure is raised. A try that the deadline has cut short says less than what failed before it,
and is raised only where nothing else failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heirlog.client.call import Call, Clock, Pause

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
JITTER = 0.2
ATTEMPT_SHARE = 1 / 3
"""Of the time of a call, for one answer: a broker that hangs may have been replaced by then."""
SHORTEST_ATTEMPT_S = 1.0


class RetryTimer:
    """timeout_s: since the start, or since `reset`. longest_pause_s: pauses double up to this."""

    def __init__(self, timeout_s: float, clock: Clock, *, longest_pause_s: float = LONGEST_PAUSE_S) -> None:
        self.timeout_s = timeout_s
        self._clock = clock
        self._longest_pause_s = longest_pause_s
        self.reset()

    def reset(self) -> None:
        """Something succeeded: the time starts again."""
        self._deadline_s = self._clock.now_s() + self.timeout_s
        self._pause_s = FIRST_PAUSE_S
        self._failure: Exception | None = None

    def remaining_s(self) -> float:
        """At least a little, so that it can be used as a timeout: `back_off` is what ends things."""
        return max(self._deadline_s - self._clock.now_s(), 0.001)

    def attempt_s(self) -> float:
        """For one answer, where another broker may answer instead."""
        return min(self.remaining_s(), max(self.timeout_s * ATTEMPT_SHARE, SHORTEST_ATTEMPT_S))

    @property
    def is_expired(self) -> bool:
        return self._clock.now_s() >= self._deadline_s

    def back_off(self, failure: Exception) -> Call[None]:
        """Pause before the next try. Raises what failed when there is no time for one."""
        self._remember(failure)
        pause_s = self._pause_s * (1 - JITTER + 2 * JITTER * self._clock.random())
        if self._clock.now_s() + pause_s >= self._deadline_s:
            assert self._failure is not None
            raise self._failure
        yield Pause(pause_s)
        self._pause_s = min(self._pause_s * 2, self._longest_pause_s)

    def _remember(self, failure: Exception) -> None:
        if self._failure is None or not isinstance(failure, TimeoutError):
            self._failure = failure

    @contextmanager
    def raising_earlier_failure(self) -> Iterator[None]:
        """An attempt with the time that is left. If it times out, raises the failure of an earlier attempt, if any."""
        try:
            yield
        except TimeoutError as error:
            if self._failure is None:
                raise
            raise self._failure from error
