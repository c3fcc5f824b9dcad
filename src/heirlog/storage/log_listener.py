"""Who is notified of events of a log that no caller waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from heirlog.protocol.types import PartitionKey


@dataclass(frozen=True, slots=True)
class LogListener:
    on_failure: Callable[[OSError], None] = lambda error: None
    """Called once, when a write in the background has failed: see `log_failure.py`."""
    on_truncated: Callable[[], None] = lambda: None
    """The recovery point went back: its checkpoint has to be written soon."""
    on_start_moved: Callable[[PartitionKey], None] = lambda key: None
    """`Log.increment_log_start` has moved the log start."""


IGNORED: Final = LogListener()
