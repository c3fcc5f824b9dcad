"""What the node says, as lines on stderr: time, level, event, then `name=value` (logfmt).

Written by hand: structlog brings rich and pygments with it, which takes longer to import than a whole node to start.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import TextIO

LEVELS = ("debug", "info", "warning", "error")
QUOTED = frozenset(' "=\n\r\t\\')


class Logger:
    """`heirlog.env.Log` for one node; lines below `level` are not printed."""

    def __init__(self, node_id: int, level: str = "info", out: TextIO | None = None) -> None:
        self._node_id = node_id
        self._shown = LEVELS[LEVELS.index(level) :]
        self._out = sys.stderr if out is None else out

    def __call__(self, level: str, event: str, /, **values: object) -> None:
        if level not in self._shown:
            return
        fields = "".join(f" {name}={_text(value)}" for name, value in values.items())
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._out.write(f"{stamp} {level:<7} node={self._node_id} {event}{fields}\n")
        self._out.flush()


def _text(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or not QUOTED.isdisjoint(text) else text
