"""What the node says: one event per line on stderr, with its fields as keys. For a person on a terminal, else JSON.

    {"timestamp": "2026-11-21T11:03:07.512345Z", "level": "warning", "event": "broker-fenced",
     "node_id": 100, "logger": "heirlog.controller.controller", "broker": 2, "reason": "..."}

An event's name never changes with its values, so that lines can be counted, and no value is glued into a sentence. What
may be in a field is decided by the caller: names, ids, offsets, error codes and reasons, never the contents of records,
and no value of a configuration. Strings of clients (a topic that does not exist) are shortened, and characters that are
not printable are escaped, so that a client cannot write lines or terminal commands through them.

A change that concerns ten thousand partitions would say the same of each, and a line costs more than electing a leader:
of one event below a warning `LINES_MAX` lines are printed in a second, and how many more there were is one line
(`lines-left-out`) before the next one of a later second. The audit log has a bound of its own (`node/audit_budget.py`).

Traps. structlog, which lays out lines for a terminal, is imported only there: JSON needs none of it, and nodes start in
less time. It imports rich, where that is installed, for tracebacks that nothing here prints: 100 ms and 5 MiB, so it is
kept from finding it. A line that cannot be written (the log lies on a full disk, its reader went away) is no reason to
end the node that wanted to say it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

from heirlog.log_levels import LogLevels

MAX_VALUE_CHARS = 2000
LINES_MAX = 100
_LIMITED = frozenset(("debug", "info"))
AUDIT = frozenset(("operation", "operations-left-out"))
"""Events of the audit log (`heirlog.node.audit`)."""
LIMITS = frozenset(("heirlog.rate_limited_log", "heirlog.failure_log"))
"""Modules that log on behalf of others."""
EXCEPTION = "exception"
"""The field that holds a traceback: whole, and below the line on a terminal."""


class Logger:
    """`heirlog.env.EventLog` for one node; what `levels` does not show is not printed."""

    def __init__(self, node_id: int, levels: LogLevels, out: TextIO | None = None) -> None:
        self._node_id = node_id
        self._levels = levels
        self._out = sys.stderr if out is None else out
        self._printer: Any = None
        self._second = 0
        self._lines_of_second: dict[str, int] = {}
        """How often each event was to be printed in this second."""

    def __call__(self, level: str, event: str, /, **values: object) -> None:
        caller = sys._getframe(1)
        while caller.f_globals["__name__"] in LIMITS and caller.f_back is not None:
            caller = caller.f_back  # on behalf of another module
        module = caller.f_globals["__name__"]
        if not self._levels.shows(level, module):
            return
        second = int(time.monotonic())
        if second != self._second:
            counts, self._second, self._lines_of_second = self._lines_of_second, second, {}
            for other, count in counts.items():
                if count > LINES_MAX:
                    self._print("info", "lines-left-out", __name__, {"of": other, "count": count - LINES_MAX})
        if level in _LIMITED and event not in AUDIT:
            count = self._lines_of_second[event] = self._lines_of_second.get(event, 0) + 1
            if count > LINES_MAX:
                return
        self._print(level, event, module, values)

    def _print(self, level: str, event: str, module: str, values: dict[str, object]) -> None:
        if self._printer is None:
            self._printer = _printer(self._out)
        try:
            self._printer.msg(event, level=level, node_id=self._node_id, logger=module, **values)
        except OSError:
            pass  # see "Traps"


class _JsonPrinter:
    def __init__(self, out: TextIO) -> None:
        self._out = out

    def msg(self, event: str, **fields: object) -> None:
        self._out.write(json.dumps(_plain(None, "msg", {**fields, "event": event})) + "\n")
        self._out.flush()


def _printer(out: TextIO) -> Any:
    if not out.isatty():
        return _JsonPrinter(out)
    with _without_rich():
        import structlog
    return structlog.wrap_logger(
        structlog.WriteLogger(out),
        wrapper_class=structlog.BoundLogger,
        processors=[_plain, _printable, structlog.dev.ConsoleRenderer(sort_keys=False)],
    )


def _plain(logger: object, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What and when first; values that JSON has, none of them long."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    ordered = {"timestamp": now, **{name: fields.pop(name) for name in ("level", "event")}}
    return ordered | {name: value if name == EXCEPTION else _value(value) for name, value in fields.items()}


def _value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_value(member) for member in value]
    if isinstance(value, set | frozenset):
        return sorted(_value(member) for member in value)  # type: ignore[type-var]  # members of one kind
    if isinstance(value, dict):
        return {str(key): _value(member) for key, member in value.items()}
    text = str(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}... ({len(text)} characters)"


def _printable(logger: object, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """On a terminal, where JSON does not escape what could move the cursor or change colours."""
    for name, value in fields.items():
        text = str(value)
        if name != EXCEPTION and not text.isprintable():
            fields[name] = text.encode("unicode_escape").decode("ascii")
    return fields


@contextmanager
def _without_rich() -> Iterator[None]:
    """Imports inside find no rich, unless it is loaded already."""
    if "rich" in sys.modules:
        yield
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python spells "not to be imported"
    try:
        yield
    finally:
        del sys.modules["rich"]
