"""How far the clients of a drill are, as curves over time."""

from __future__ import annotations

import threading

from heirlog.drill.chaos_record import now_ms

APART_MS = 50
"""Two points of a curve are at least so far apart, so that a long drill has a small picture."""


class ClientProgress:
    """How far clients are, by name. Several threads may call it."""

    def __init__(self) -> None:
        self.curves: dict[str, list[tuple[int, int]]] = {}
        self.steps: list[tuple[int, str]] = []
        """(time, text) of what the script of the drill has reached."""
        self._lock = threading.Lock()

    def step(self, text: str) -> None:
        self.steps.append((now_ms(), text))

    def reach(self, name: str, value: int) -> None:
        with self._lock:
            self._reach(name, value)

    def grow(self, name: str) -> None:
        """By one."""
        with self._lock:
            points = self.curves.get(name)
            self._reach(name, 1 + (points[-1][1] if points else 0))

    def _reach(self, name: str, value: int) -> None:
        points = self.curves.setdefault(name, [])
        if points and points[-1][1] == value:
            return
        at_ms = now_ms()
        if len(points) > 1 and at_ms - points[-2][0] < APART_MS:
            points[-1] = (at_ms, value)
        else:
            points.append((at_ms, value))
