from __future__ import annotations

import threading


class Inbox:
    """What a loop does with functions from other threads, when the test says so."""

    def __init__(self) -> None:
        self._functions: list[object] = []
        self._arrived = threading.Condition()

    def __call__(self, function: object) -> None:
        with self._arrived:
            self._functions.append(function)
            self._arrived.notify()

    def run(self, count: int = 1) -> None:
        """Wait for `count` deliveries and run them."""
        for _ in range(count):
            with self._arrived:
                assert self._arrived.wait_for(lambda: self._functions, 60)
                function = self._functions.pop(0)
            assert callable(function)
            function()
