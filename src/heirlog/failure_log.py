"""The log lines of something that is tried again until it works: what they say changes seldom, however often it fails.

    failed   for this reason the first time since it worked       a line
             for this reason again                                counted; a line once a minute
    worked   after failures without a line                        a line that says how many there were

`failures` in the lines counts all failures since it last worked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from heirlog.env import EventLog

REMIND_MS: Final = 60_000
REASONS_MAX: Final = 100
"""Of which it is remembered that they have a line; then all are forgotten."""


class FailureLog:
    __slots__ = ("_event", "_failures", "_is_silent", "_log", "_logged_ms", "_now_ms", "_over")

    def __init__(self, log: EventLog, now_ms: Callable[[], int], event: str, over: str) -> None:
        """event: of a failure. over: of the line that follows once it works."""
        self._log = log
        self._now_ms = now_ms
        self._event = event
        self._over = over
        self._failures = 0
        self._is_silent = False
        """The last failure has no line."""
        self._logged_ms: dict[Hashable, int] = {}

    def failed(self, level: str, reason: Hashable, /, **values: object) -> None:
        """reason: what makes this failure another one than those that have a line."""
        self._failures += 1
        now_ms = self._now_ms()
        logged_ms = self._logged_ms.get(reason)
        self._is_silent = logged_ms is not None and now_ms - logged_ms < REMIND_MS
        if self._is_silent:
            return
        if len(self._logged_ms) >= REASONS_MAX:
            self._logged_ms.clear()
        self._logged_ms[reason] = now_ms
        event = self._event
        self._log(level, event, **values, failures=self._failures)

    def worked(self) -> None:
        if self._failures:
            if self._is_silent:
                event = self._over
                self._log("info", event, failures=self._failures)
            self._failures = 0
            self._is_silent = False
            self._logged_ms.clear()
