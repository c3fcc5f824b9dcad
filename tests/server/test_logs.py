"""Lines for programs and for people, and what can never be in them."""

from __future__ import annotations

import ast
import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import heirlog
from heirlog.failure_log import FailureLog
from heirlog.log_levels import LOGGERS, ROOT, LogLevels
from heirlog.rate_limited_log import RateLimitedLog
from heirlog.server import logs
from heirlog.server.logs import LIMITS, LINES_MAX, MAX_VALUE_CHARS, Logger

SOURCE = Path(heirlog.__file__).parent
LIMITED = ("log_limited", "_log_limited")
SAYING = ("log", "_log", *LIMITED)
RESERVED = {"event", "level", "timestamp", "node_id", "logger"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A file on a disk that is."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def lines_of(*events: tuple[str, str, dict[str, Any]], level: str = "INFO") -> list[dict[str, Any]]:
    out = io.StringIO()
    log = Logger(3, LogLevels(level), out)
    for severity, event, values in events:
        log(severity, event, **values)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_an_object_with_the_fields_as_keys() -> None:
    (line,) = lines_of(
        ("warning", "isr-shrunk", {"topic": "t", "isr": frozenset({2, 1}), "why": 'a "b"\nc', "no": None})
    )
    stamp = line.pop("timestamp")
    assert stamp.endswith("Z") and stamp[10] == "T"
    assert line == {
        "event": "isr-shrunk",
        "level": "warning",
        "node_id": 3,
        "logger": __name__,
        "topic": "t",
        "isr": [1, 2],
        "why": 'a "b"\nc',
        "no": None,
    }


def test_a_line_that_is_limited_has_the_logger_and_the_level_of_who_says_it() -> None:
    out, levels = io.StringIO(), LogLevels()
    limited = RateLimitedLog(Logger(3, levels, out), lambda: 0)
    limited("info", "marker-refused")
    limited.of_client("info", "authentication-failed", "10.0.0.1")
    assert {json.loads(line)["logger"] for line in out.getvalue().splitlines()} == {__name__}
    levels.set(__name__, "ERROR")
    limited("info", "another")
    assert "another" not in out.getvalue()


def test_what_limits_or_counts_lines_logs_on_behalf_of_its_caller() -> None:
    out = io.StringIO()
    log = Logger(3, LogLevels(), out)
    RateLimitedLog(log, lambda: 0.0)("warning", "frame-refused")
    RateLimitedLog(log, lambda: 0.0).of_client("warning", "login-failed", "10.0.0.1")
    failures = FailureLog(log, lambda: 0, "fetch-failed", "fetch-resumed")
    failures.failed("warning", "refused")
    failures.failed("warning", "refused")
    failures.worked()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["event"], line["logger"]) for line in lines] == [
        (event, __name__) for event in ("frame-refused", "login-failed", "fetch-failed", "fetch-resumed")
    ]


def test_events_below_the_level_are_not_printed() -> None:
    both = ("info", "seen", {}), ("debug", "unseen", {})
    assert [line["event"] for line in lines_of(*both)] == ["seen"]
    assert [line["event"] for line in lines_of(*both, level="debug")] == ["seen", "unseen"]
    assert lines_of(*both, level="FATAL") == []


def test_what_is_said_of_thousands_is_counted_after_a_hundred_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    log = Logger(3, LogLevels(), out)
    for index in range(LINES_MAX + 7):
        log("info", "partition-led", partition=index)
        log("warning", "records-given-up", partition=index)
    now[0] = 6.0
    log("info", "other")
    log("info", "partition-led", partition=-1)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert sum(line["event"] == "partition-led" for line in lines) == LINES_MAX + 1
    assert sum(line["event"] == "records-given-up" for line in lines) == LINES_MAX + 7, "a warning is never left out"
    assert [(line["of"], line["count"]) for line in lines if line["event"] == "lines-left-out"] == [
        ("partition-led", 7)
    ]


@pytest.mark.parametrize("event", ["operation", "operations-left-out"])
def test_the_audit_log_has_bounds_of_its_own(event: str) -> None:
    assert len(lines_of(*[("info", event, {"on": [n]}) for n in range(3 * LINES_MAX)])) == 3 * LINES_MAX


def test_a_long_value_is_cut() -> None:
    (line,) = lines_of(("info", "x", {"topic": "t" * 100_000, "exception": "e" * 100_000}))
    assert len(line["topic"]) < MAX_VALUE_CHARS + 100 and line["topic"].endswith("(100000 characters)")
    assert len(line["exception"]) == 100_000, "a traceback is whole"


HOSTILE = 'x\n{"event":"operation","principal":"User:admin"}\r\x1b[2J\0\x85\u2028\u2029\ud800\u202e"}'


def test_what_clients_choose_is_a_value_in_one_line_of_ascii() -> None:
    """Client ids, principals and names of topics: each could hold the line of another operation."""
    out = io.StringIO()
    given = {"client_id": HOSTILE, "on": [HOSTILE], "principal": f"User:{HOSTILE}", "outcome": {HOSTILE: 1}}
    Logger(3, LogLevels(), out)("info", "operation", **given)
    text = out.getvalue()
    assert text.isascii() and text[:-1].isprintable() and text.endswith("}\n")
    line = json.loads(text)
    assert line["event"] == "operation" and {name: line[name] for name in given} == given


def test_on_a_terminal_a_person_reads_and_no_client_writes() -> None:
    out = Terminal()
    Logger(3, LogLevels(), out)("warning", "topic-not-created", topic="evil\x1b[2J\nfake line", partition=7)
    text = out.getvalue()
    assert text.count("\n") == 1 and "topic-not-created" in text and "partition" in text
    assert "\x1b[2J" not in text and "\\x1b[2J" in text


def test_a_line_that_cannot_be_written_ends_nothing() -> None:
    log = Logger(3, LogLevels(), Full())
    log("info", "x")
    log("info", "x")


def test_every_module_that_logs_has_a_logger_and_no_field_hides_another() -> None:
    for path in SOURCE.rglob("*.py"):
        source = path.read_text()
        if "sim" in path.relative_to(SOURCE).parts or not any(f".{name}(" in source for name in SAYING):
            continue
        for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name not in SAYING or len(call.args) != 2:
                continue
            where = f"{path}:{call.lineno}"
            module = ".".join(("heirlog", *path.relative_to(SOURCE).with_suffix("").parts))
            assert module in LIMITS or any(module.startswith(logger + ".") for logger in LOGGERS), where
            assert not {keyword.arg for keyword in call.keywords} & RESERVED, where
            if name in LIMITED:
                continue  # `why` is a sentence there
            assert not any(isinstance(keyword.value, ast.JoinedStr) for keyword in call.keywords), where
            assert isinstance(call.args[1], ast.Constant | ast.Name), f"{where}: an event has one name"


def test_a_logger_follows_the_nearest_one_above_that_has_a_level() -> None:
    levels = LogLevels("info")
    levels.set("heirlog.broker", "debug")
    assert levels.level_of("heirlog.broker.groups") == "DEBUG"
    assert levels.shows("debug", "heirlog.broker.cleaner")
    assert not levels.shows("debug", "heirlog.raft.quorum")
    levels.set("heirlog.broker", None)
    assert {levels.level_of(logger) for logger in LOGGERS} == {"INFO"}


def test_the_root_keeps_what_it_was_given_until_log_level_changes() -> None:
    levels = LogLevels("INFO")
    levels.set(ROOT, "ERROR")
    levels.configure("INFO")
    assert levels.level_of(ROOT) == "ERROR"
    levels.configure("debug")
    assert levels.level_of(ROOT) == "DEBUG"


def test_a_node_that_logs_loads_no_rich_and_structlog_only_for_a_terminal() -> None:
    code = (
        "import io, sys; from heirlog.server.main import Logger; from heirlog.log_levels import LogLevels; "
        "Logger(1, LogLevels(), io.StringIO())('info', 'x'); assert 'structlog' not in sys.modules; "
        "terminal = io.StringIO(); terminal.isatty = lambda: True; Logger(1, LogLevels(), terminal)('info', 'x'); "
        "assert 'structlog' in sys.modules and 'rich.console' not in sys.modules; import rich.console"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
