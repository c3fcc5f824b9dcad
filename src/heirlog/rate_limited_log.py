"""Errors that clients or retries cause again and again: one line of each kind in ten seconds, however many there are.

Writing a line costs more than what it is about, and the other lines of the log must stay visible. `suppressed` says
how many lines of the kind were left out since the last one.

What a client did that an operator has to see is a kind of its own for each address (`of_host`), so that a noisy one
does not hide a quiet one. Beyond `HOSTS_MAX` addresses in ten seconds the others share one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heirlog.env import EventLog

LOG_AGAIN_MS: Final = 10_000
HOSTS_MAX: Final = 100
ANY_HOST: Final = ""


class RateLimitedLog:
    """Kinds are event names: they come from code, never from a client."""

    __slots__ = ("_hosts", "_log", "_logged_ms", "_now_ms", "_suppressed")

    def __init__(self, log: EventLog, now_ms: Callable[[], float]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._logged_ms: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}
        self._hosts: set[tuple[str, str]] = set()

    def __call__(self, level: str, event: str, /, **values: object) -> None:
        self._write(level, (event, ANY_HOST), values)

    def of_host(self, level: str, event: str, host: str, /, **values: object) -> None:
        kind = (event, host)
        if kind not in self._hosts:
            if len(self._hosts) >= HOSTS_MAX:
                self._forget_quiet_hosts()
            if len(self._hosts) >= HOSTS_MAX:
                kind = (event, ANY_HOST)
            else:
                self._hosts.add(kind)
        self._write(level, kind, values)

    def _write(self, level: str, kind: tuple[str, str], values: Mapping[str, object]) -> None:
        now_ms = self._now_ms()
        logged_ms = self._logged_ms.get(kind)
        if logged_ms is not None and now_ms - logged_ms < LOG_AGAIN_MS:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._logged_ms[kind] = now_ms
        event, _ = kind
        self._log(level, event, **values, suppressed=self._suppressed.pop(kind, 0))

    def _forget_quiet_hosts(self) -> None:
        """What was left out of theirs is said with the line that all further hosts share."""
        now_ms = self._now_ms()
        for kind in [one for one in self._hosts if now_ms - self._logged_ms[one] >= LOG_AGAIN_MS]:
            self._hosts.discard(kind)
            del self._logged_ms[kind]
            left_out = self._suppressed.pop(kind, 0)
            if left_out:
                shared = (kind[0], ANY_HOST)
                self._suppressed[shared] = self._suppressed.get(shared, 0) + left_out
