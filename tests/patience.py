"""Waiting for what a running cluster brings about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0
T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str = "it", within_s: float = PATIENCE_S) -> T:
    """The first true value of `condition`, which is asked until then: soon again, and the rarer the longer it takes."""
    began = time.monotonic()
    while not (found := condition()):
        waited_s = time.monotonic() - began
        assert waited_s < within_s, f"waited {within_s:g} s in vain for {what}"
        time.sleep(min(max(0.01, waited_s / 10), 0.2))
    return found
