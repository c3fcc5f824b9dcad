"""Errors that clients or retries cause again and again: one line of each kind in ten seconds, however many there are.

Writing a line costs more than what it is about, and the other lines of the log must stay visible. `suppressed` says
how many lines of the kind were left out since the last one.

What a client did that an operator has to see is a kind of its own for each client (`of_client`: an address, or a user
at an address), so that a noisy one does not hide a quiet one. Beyond `CLIENTS_MAX` of them in ten seconds the others
share one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heirlog.env import EventLog

LOG_AGAIN_MS: Final = 10_000
CLIENTS_MAX: Final = 100
ANY_CLIENT: Final = ""


class RateLimitedLog:
    """Kinds are event names: they come from code, never from a client."""

    __slots__ = ("_clients", "_log", "_logged_ms", "_now_ms", "_suppressed")

    def __init__(self, log: EventLog, now_ms: Callable[[], float]) -> None:
        self._log = log
        self._now_ms = now_ms
        self._logged_ms: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}
        self._clients: set[tuple[str, str]] = set()

    def __call__(self, level: str, event: str, /, **values: object) -> None:
        self._write(level, (event, ANY_CLIENT), values)

    def of_client(self, level: str, event: str, client: str, /, **values: object) -> None:
        kind = (event, client)
        if kind not in self._clients:
            if len(self._clients) >= CLIENTS_MAX:
                self._forget_quiet_clients()
            if len(self._clients) >= CLIENTS_MAX:
                kind = (event, ANY_CLIENT)
            else:
                self._clients.add(kind)
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

    def _forget_quiet_clients(self) -> None:
        """What was left out of theirs is said with the line that all further clients share."""
        now_ms = self._now_ms()
        for kind in [one for one in self._clients if now_ms - self._logged_ms[one] >= LOG_AGAIN_MS]:
            self._clients.discard(kind)
            del self._logged_ms[kind]
            left_out = self._suppressed.pop(kind, 0)
            if left_out:
                shared = (kind[0], ANY_CLIENT)
                self._suppressed[shared] = self._suppressed.get(shared, 0) + left_out
