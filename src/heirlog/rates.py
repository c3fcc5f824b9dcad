"""How fast something happens, for quotas: Kafka's two ways to measure it, so that clients wait as long as there.

`WindowedRate` counts in samples of `window_ms` and keeps about `samples` of them:

    rate = what the samples hold / time since the oldest of them began

A sample begins with the first event after the one before is full, and is dropped when its last event is `samples`
windows old. The time is stretched to `samples - 1` windows: otherwise the first second of a client would look like a
burst. The wait until the average is down again, if nothing more comes, is (rate - limit) / limit x that time.

`TokenBucket` refills by `limit` per second, up to what `samples` windows refill. A single event may take more than
there is, and the next one waits until the bucket is at zero again: one large request does not block a client for as
long as a rate would that is averaged over time.

Source: Kafka's Rate, SampledStat and TokenBucket; KIP-13, KIP-599.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K")
M = TypeVar("M", "WindowedRate", "TokenBucket")

DEFAULT_SAMPLES: Final = 11
DEFAULT_WINDOW_MS: Final = 1000
MEASURED_MAX: Final = 10_000
"""How many clients are measured for one quota. One more takes the place of the one that was idle for longest."""
WAIT_MS_MAX: Final = 2**31 - 1
"""What the field of an answer can hold."""
UNUSED_MS: Final = 60 * 60 * 1000
"""A measure is forgotten after this time without use, as in Kafka."""


@dataclass(slots=True)
class _Sample:
    begun_ms: int
    last_event_ms: int
    value: float = 0.0


class WindowedRate:
    """Events per second. Times are those of one monotonic clock, and never go back."""

    __slots__ = ("_found", "_is_stretched", "_samples", "_window_ms")

    def __init__(
        self, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS, is_stretched: bool = True
    ) -> None:
        """is_stretched: False for Kafka's SimpleRate, whose time is one window at least."""
        self._samples = samples
        self._is_stretched = is_stretched
        self._window_ms = window_ms
        self._found: list[_Sample] = []

    def add(self, value: float, now_ms: int) -> None:
        self._drop_old(now_ms)
        if not self._found or now_ms - self._found[-1].begun_ms >= self._window_ms:
            self._found.append(_Sample(now_ms, now_ms))
        sample = self._found[-1]
        sample.value += value
        sample.last_event_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        return self.total(now_ms) * 1000 / self._measured_ms(now_ms)

    def total(self, now_ms: int) -> float:
        """What the samples hold."""
        self._drop_old(now_ms)
        return sum(sample.value for sample in self._found)

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """How long nothing may come until the rate is down to `limit`; 0 while it is not above."""
        rate = self.per_second(now_ms)
        if rate <= limit:
            return 0
        # of a tiny limit the exact time may be no number that fits
        return round(min(WAIT_MS_MAX, (rate - limit) / limit * self._measured_ms(now_ms)))

    def _measured_ms(self, now_ms: int) -> int:
        elapsed_ms = now_ms - self._found[0].begun_ms if self._found else 0
        if not self._is_stretched:
            return max(self._window_ms, elapsed_ms)
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        return max(1, elapsed_ms + max(0, missing) * self._window_ms)

    def _drop_old(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._samples * self._window_ms
        while self._found and self._found[0].last_event_ms <= oldest_ms:
            del self._found[0]


class TokenBucket:
    """Starts full. `limit` is given at each call, because it may change."""

    __slots__ = ("_seconds", "_tokens", "_updated_ms")

    def __init__(self, samples: int = DEFAULT_SAMPLES, window_ms: int = DEFAULT_WINDOW_MS) -> None:
        self._seconds = samples * window_ms / 1000
        self._tokens: float | None = None
        self._updated_ms = 0

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Also more than there is: the bucket is then below zero."""
        self._tokens = self.left(limit, now_ms) - count

    def left(self, limit: float, now_ms: int) -> float:
        burst = self._seconds * limit
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Until the bucket is at zero; 0 while it is not below."""
        return round(min(WAIT_MS_MAX, max(0.0, -self.left(limit, now_ms)) / limit * 1000))


class Measures(Generic[K, M]):
    """One measure for each client, as far as they are in use."""

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[], M]) -> None:
        self._make: Callable[[], M] = make
        self._found: dict[K, tuple[M, int]] = {}
        """With the time of the last use, in the order of these times."""

    def of(self, client: K, now_ms: int) -> M:
        known = self._found.pop(client, None)
        if known is None:
            self._make_room(now_ms)
        measure = self._make() if known is None else known[0]
        self._found[client] = measure, now_ms
        return measure

    def __len__(self) -> int:
        return len(self._found)

    def _make_room(self, now_ms: int) -> None:
        while self._found:
            oldest = next(iter(self._found))
            if len(self._found) < MEASURED_MAX and now_ms - self._found[oldest][1] < UNUSED_MS:
                return
            del self._found[oldest]
