"""Errors that clients or retries cause again and again: one line of each kind in ten seconds, however many there are.

Writing a line costs more than what it is about, and the other lines of the log must stay visible. `suppressed` says
how many lines of the kind were left out since the last one.
"""

from __future__ import annotations

from collections.abc import Callable

from heirlog.env import EventLog

LOG_AGAIN_MS = 10_000


class RateLimitedLog:
    """Kinds are event names: they come from code, never from a client."""

    __slots__ = ("_log", "_logged_ms", "_now_ms", "_suppressed")

    def __init__(self, log: EventLog, now_ms: Callable[[], float]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._logged_ms: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def __call__(self, level: str, event: str, /, **values: object) -> None:
        now_ms = self._now_ms()
        logged_ms = self._logged_ms.get(event)
        if logged_ms is not None and now_ms - logged_ms < LOG_AGAIN_MS:
            self._suppressed[event] = self._suppressed.get(event, 0) + 1
            return
        self._logged_ms[event] = now_ms
        self._log(level, event, **values, suppressed=self._suppressed.pop(event, 0))
