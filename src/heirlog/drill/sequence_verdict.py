"""The part of a verdict that drills with numbered records have in common (`heirlog.drill.sequences`).

acknowledged by producers, read by readers and groups  -->  lost, doubled, out of order, skipped, wrong bytes
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from heirlog.drill.soak_clients import SoakRecord
from heirlog.drill.workload import QUIET_LIMIT_S

POLL_S = 0.05


@dataclass(slots=True)
class SequenceVerdict:
    """What a drill found; `failures` has a sentence for each promise that was broken."""

    drill: ClassVar[str] = ""
    """Name of the command."""
    broken: ClassVar[tuple[str, ...]] = (
        "lost",
        "doubled",
        "out_of_order",
        "wrong_bytes",
        "skipped",
        "commits_lost",
        "failures",
    )
    """Members that name a broken promise when they are not zero or empty."""

    minutes: float
    seed: int
    acknowledged: int = 0
    read: int = 0
    lost: int = 0
    doubled: int = 0
    out_of_order: int = 0
    wrong_bytes: int = 0
    skipped: int = 0
    """Records that a group or an assigned consumer skipped while it read."""
    commits: int = 0
    commits_lost: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not any(getattr(self, name) for name in self.broken)

    def as_json(self) -> dict[str, Any]:
        return {"drill": self.drill, **asdict(self), "passed": self.passed}

    def count(self, record: SoakRecord) -> None:
        """Everything that clients wrote down, except for `failures`: a caller may add to those of the record."""
        self.acknowledged = record.acknowledged.count
        self.doubled, self.out_of_order = record.acknowledged.doubled, record.acknowledged.out_of_order
        for name, reading in record.readings:
            unread = reading.unread(record.acknowledged.of(reading.topic))
            if unread or reading.missing or reading.doubled or reading.out_of_order or reading.wrong_bytes:
                record.failed(
                    f"{name}: {unread} acknowledged records unread, {reading.missing} skipped, {reading.doubled} "
                    f"doubled, {reading.out_of_order} out of order, {reading.wrong_bytes} with wrong bytes"
                )
            self.read += reading.read
            self.lost += unread
            self.skipped += reading.missing
            self.doubled += reading.doubled
            self.out_of_order += reading.out_of_order
            self.wrong_bytes += reading.wrong_bytes
        self.commits, self.commits_lost = record.commits, record.commits_lost


def wait_for_readers(record: SoakRecord, watch: Callable[[], None] = lambda: None) -> None:
    """Until every reader has all acknowledged records, or none has got a new one for `QUIET_LIMIT_S`.

    watch: called again and again meanwhile.
    """
    seen, since_s = -1, time.monotonic()
    while _unread(record) and time.monotonic() - since_s < QUIET_LIMIT_S:
        if seen != (seen := sum(reading.read for _, reading in record.readings)):
            since_s = time.monotonic()
        watch()
        time.sleep(POLL_S)


def _unread(record: SoakRecord) -> int:
    return sum(reading.unread(record.acknowledged.of(reading.topic)) for _, reading in record.readings)
