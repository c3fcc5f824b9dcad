"""One direction between two hosts, and the streams on it. Faults act on it, and can hold its items back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from heirlog.sim.world import Process


class NetworkLink:
    """One direction between two hosts."""

    __slots__ = ("blocked", "held", "loss", "low_us", "reset", "span_us")

    def __init__(self, low_us: int, span_us: int) -> None:
        self.low_us = low_us
        self.span_us = span_us
        """Latency is between low and low + span, mostly near low."""
        self.loss = 0.0
        """Chance of an item to be lost."""
        self.reset = 0.0
        """Chance of an item to reset its connection."""
        self.blocked = False
        self.held: list[tuple[Stream, Item]] = []


class Item(NamedTuple):
    """An item that a blocked link holds back: `deliver` runs at the far end, in `process` (None: `deliver` finds the
    process itself).
    """

    process: Process | None
    label: str
    deliver: Callable[[], None]
    survives: bool = False
    """Arrives even if items of the stream were lost: the notification that the connection is closed."""


class Stream:
    __slots__ = ("clear_at_us", "cut_us", "link", "stalled")

    def __init__(self, link: NetworkLink) -> None:
        self.link = link
        self.clear_at_us = 0
        self.stalled = False
        self.cut_us: int | None = None
        """What would arrive later than this does not."""

    def is_cut(self, now_us: int) -> bool:
        """Whether what arrives now does not, except for the notification that the connection is closed."""
        return self.cut_us is not None and now_us > self.cut_us
