"""How long something of the quorum took, in the last half minute: a commit, or an election. For metrics."""

from __future__ import annotations

from collections import deque

WINDOW_MS = 30_000
KEPT_MAX = 10_000


class LatencyWindow:
    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int]] = deque(maxlen=KEPT_MAX)

    def add(self, now_ms: int, latency_ms: int) -> None:
        """`latency_ms` may be by the wall clock, which may have jumped."""
        self._seen.append((now_ms, max(0, latency_ms)))

    def average_and_max_ms(self, now_ms: int) -> tuple[float, float]:
        """0, 0 if nothing ended in the window."""
        seen = self._seen
        while seen and now_ms - seen[0][0] > WINDOW_MS:
            seen.popleft()
        if not seen:
            return 0.0, 0.0
        latencies = [latency_ms for _, latency_ms in seen]
        return sum(latencies) / len(latencies), max(latencies)
