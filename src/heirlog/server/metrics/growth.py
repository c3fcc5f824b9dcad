"""How fast a count grows, from one reading of the metrics to another."""

from __future__ import annotations

from collections import deque

GROWTH_WINDOW_MS = 60_000


class GrowthRate:
    """Of one count."""

    def __init__(self) -> None:
        self._readings: deque[tuple[int, int]] = deque()

    def per_second(self, now_ms: int, count: int) -> float:
        """Growth since the oldest reading of the last minute; 0 at the first."""
        readings = self._readings
        readings.append((now_ms, count))
        while len(readings) > 2 and now_ms - readings[1][0] >= GROWTH_WINDOW_MS:
            readings.popleft()
        began_ms, began = readings[0]
        return max(0, count - began) / ((now_ms - began_ms) / 1000) if now_ms > began_ms else 0.0
