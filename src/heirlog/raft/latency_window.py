"""How long something took, in the last half minute: a commit, an election, loading a partition. For metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil

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
        latencies = self._latencies_ms(now_ms)
        return (sum(latencies) / len(latencies), max(latencies)) if latencies else (0.0, 0.0)

    def quantiles_ms(self, now_ms: int, quantiles: Sequence[float]) -> list[float]:
        """For each share the latency that this share of them does not exceed; 0 if nothing ended in the window."""
        latencies = sorted(self._latencies_ms(now_ms)) or [0]
        return [latencies[max(0, ceil(quantile * len(latencies)) - 1)] for quantile in quantiles]

    def _latencies_ms(self, now_ms: int) -> list[int]:
        seen = self._seen
        while seen and now_ms - seen[0][0] > WINDOW_MS:
            seen.popleft()
        return [latency_ms for _, latency_ms in seen]
