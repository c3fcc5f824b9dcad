"""Tables on terminals of any width: whatever a row holds is found whole."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import pty
import random
import re
import struct
import subprocess
import sys
import termios
from bisect import bisect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import heirlog.cli
from heirlog.cli.render import _words, laid_out
from heirlog.testing import Cluster

MODULES = sorted(Path(heirlog.cli.__file__).parent.glob("*.py"))
WIDTHS = (1, 20, 40, 80, 120, 200)
VALUES: tuple[Any, ...] = (
    "",
    None,
    True,
    0,
    -9223372036854775808,
    [],
    [1, 2, 3],
    list(range(100, 140)),
    "orders",
    "a sentence with blanks, as a broker's message is one: it may be longer than a line of a terminal",
    "x" * 249,
    "2026-11-22T10:00:00+00:00",
    "at most 500 (offsets 100 to 600)",
    "令和の注文" * 9,
    "/var/lib/heirlog/a folder/with blanks/and-a-long-name" * 3,
)


def every_table() -> Iterator[tuple[str, Mapping[str, str]]]:
    """The columns of each call of `show_rows` in the commands, read from their source."""
    for module in MODULES:
        if module.stem == "watch":
            # its columns come from commands, which also show them without --watch
            continue
        tree = ast.parse(module.read_text(encoding="utf-8"))
        shared = dict(
            _dictionaries(ast.Module([node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)], []))
        )
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            if function.name in ("show_rows", "laid_out"):
                continue
            known = {**shared}
            for name, found in _dictionaries(function):
                known[name] = {**known.get(name, {}), **found}
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("show_rows", "laid_out"):
                    columns = call.args[0]
                    named = known[columns.id] if isinstance(columns, ast.Name) else ast.literal_eval(columns)
                    yield f"{module.stem}.{function.name}:{call.lineno}", named


def _dictionaries(node: ast.AST) -> Iterator[tuple[str, dict[str, str]]]:
    """Each dictionary of texts that is assigned to a name, or added to one by `|=`."""
    for found in ast.walk(node):
        if isinstance(found, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            target = found.targets[0] if isinstance(found, ast.Assign) else found.target
            value = found.value.body if isinstance(found.value, ast.IfExp) else found.value
            if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
                try:
                    yield target.id, ast.literal_eval(value)
                except ValueError:
                    continue


TABLES = dict(every_table())


def squeezed(text: str) -> str:
    return "".join(text.split())


def shown(value: Any) -> str:
    """As it is read, without the blanks at which it may be wrapped."""
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return "none" if value is None else squeezed(str(value))


def in_columns(headings: list[str], text: str) -> list[str]:
    """What is below each heading of a table, whose values may continue on further lines; empty if it is no table."""
    first, *lines = text.splitlines()
    starts = [0]
    for heading in headings[1:]:
        at = first.find(f" {_words(heading)[0]}", starts[-1]) + 1
        if not at:
            return []
        starts.append(at)
    found = ["" for _ in headings]
    for line in lines:
        at = 0
        for character in line:
            found[bisect(starts, at) - 1] += character
            at += cell_len(character)
    # the further lines of headings come first
    shown = [first[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]
    rests = [heading.removeprefix(part) for heading, part in zip(headings, shown, strict=True)]
    return [squeezed(column).removeprefix(rest) for column, rest in zip(found, rests, strict=True)]


def assert_whole(columns: Mapping[str, str], rows: list[dict[str, Any]], text: str) -> None:
    """Row by row, as a table or as blocks; a value that is wrapped is joined again."""
    if in_columns(list(columns.values()), text) == ["".join(shown(row[key]) for row in rows) for key in columns]:
        return
    text = squeezed(text)
    for row in rows:
        line = "".join(shown(row[key]) for key in columns)
        block = "".join(squeezed(heading) + shown(row[key]) for key, heading in columns.items())
        assert line in text or block in text, row


def test_the_tables_of_the_commands_are_found() -> None:
    modules = {name.partition(".")[0] for name in TABLES}
    assert {"acls", "broker", "configs", "features", "groups", "pipeline", "recover", "salvage", "topics"} <= modules
    assert len(TABLES) > 20


@pytest.mark.parametrize("table", TABLES)
def test_every_value_of_every_table_is_whole_at_every_width(table: str) -> None:
    chance, columns = random.Random(table), TABLES[table]
    for width in (*WIDTHS, None):
        for count in (0, 1, 3):
            rows = [{key: chance.choice(VALUES) for key in columns} for _ in range(count)]
            lines = [line.plain for line in laid_out(columns, rows, width)]
            assert_whole(columns, rows, "\n".join(lines))
            if width is None:
                assert len(lines) == 1 + count, "each row is one line of a pipe"
            elif width >= 40 and count:
                assert max(map(cell_len, lines)) <= width


def test_rows_that_fit_stay_a_table_and_a_long_last_value_is_wrapped_in_its_column() -> None:
    columns = {"name": "Name", "note": "Note"}
    rows = [{"name": "one", "note": "short"}, {"name": "two", "note": "many words that do not fit at all beside it"}]
    assert [line.plain for line in laid_out(columns, rows[:1], 40)] == ["Name  Note", "one   short"]
    assert [line.plain.rstrip() for line in laid_out(columns, rows, 40)] == [
        "Name  Note",
        "one   short",
        "two   many words that do not fit at all",
        "      beside it",
    ]


def test_headings_of_several_words_are_folded_where_a_row_would_not_fit_otherwise() -> None:
    columns = {"topic": "Topic", "epoch": "LeaderEpoch", "elr": "LastKnownElr"}
    rows = [{"topic": "x" * 20, "epoch": 7, "elr": [1, 2, 3]}]
    assert [line.plain for line in laid_out(columns, rows, 47)] == [
        "Topic                 LeaderEpoch  LastKnownElr",
        "xxxxxxxxxxxxxxxxxxxx  7            1,2,3",
    ]
    assert [line.plain for line in laid_out(columns, rows, 46)] == [
        "Topic                 Leader  Last",
        "                      Epoch   Known",
        "                              Elr",
        "xxxxxxxxxxxxxxxxxxxx  7       1,2,3",
    ]
    assert [line.plain for line in laid_out(columns, rows, 33)][-1] == "xxxxxxxxxxxxxxxxxxxx 7      1,2,3"
    assert laid_out(columns, rows, 32)[0].plain == "Topic", "a block"


def test_rows_that_do_not_fit_become_blocks_of_headings_and_values() -> None:
    columns = {"first": "First", "second": "SecondHeading"}
    rows: list[dict[str, Any]] = [{"first": "a" * 24, "second": list(range(10))}, {"first": "b", "second": None}]
    assert [line.plain for line in laid_out(columns, rows, 43)] == [
        "First          " + "a" * 24,
        "SecondHeading  0,1,2,3,4,5,6,7,8,9",
        "",
        "First          b",
        "SecondHeading  none",
    ]


def test_a_value_cannot_break_a_row_or_drive_the_terminal() -> None:
    (_, row) = laid_out({"group": "Group", "state": "State"}, [{"group": "a\nb\x1b[2J", "state": "ok"}], 80)
    assert row.plain == r"a\nb\x1b[2J  ok"


def test_no_command_lays_out_rows_in_another_way() -> None:
    """rich's own tables cut what does not fit."""
    assert [module.name for module in MODULES if "rich.table" in module.read_text(encoding="utf-8")] == []


def test_the_widest_columns_wrap_before_rows_become_blocks() -> None:
    columns = {"id": "Id", "path": "Path", "name": "Name", "size": "Size"}
    rows = [{"id": 7, "path": "/var/lib/heirlog/broker-1/logs", "name": "a.name.that-has.parts_and-more", "size": 123}]
    rows.append({"id": 8, "path": "/tmp", "name": "x" * 30, "size": 4})
    assert [line.plain for line in laid_out(columns, rows, 63)] == [
        "Id  Path                        Name                       Size",
        "7   /var/lib/heirlog/broker-1/  a.name.that-has.parts_     123",
        "    logs                        and-more",
        "8   /tmp                        " + "x" * 25 + "  4",
        "                                " + "x" * 5,
    ]


@pytest.mark.parametrize(
    ("table", "typical"),
    [
        ("topics.describe", ["__transaction_state", 49, 1, 12, [1, 3, 2], [1, 3, 2], [], []]),
        ("topic_summaries.show", ["greetings", 3, 3, "cleanup.policy=[compact,delete], retention.ms=86400000"]),
        ("log_dirs.log_dirs", [1, "greetings", 0, 123_456_789, 0, "NONE", "/home/alice/project/data/broker-1/log"]),
        ("configs.describe", ["x2", "leader.replication.throttled.replicas", "server.properties", 1 << 62]),
        (
            "configs.describe",
            ["1", "transaction.remove.expired.transaction.cleanup.interval.ms", "server.properties", "TLSv1.2,TLSv1.3"],
        ),
        ("quorum.describe", [100, "2Q2FyzbQTxK63O2hy6zXwA", 12345, 0, 1795771101794, 1795771101794, "Observer"]),
    ],
)
def test_a_table_of_common_values_is_one_at_80_columns(table: str, typical: list[Any]) -> None:
    columns = next(columns for name, columns in TABLES.items() if name.startswith(f"{table}:"))
    rows = [dict(zip(columns, typical, strict=True))] * 3
    lines = [line.plain for line in laid_out(columns, rows, 80)]
    assert "".join(in_columns(list(columns.values()), "\n".join(lines))[:1]) == squeezed(str(typical[0])) * 3
    assert len(lines) <= 3 * 3 + 3, "a row needs three lines at most"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        yield running


def on_terminal(columns: int, *arguments: str) -> str:
    """What a command prints on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-m", "heirlog", *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:
        pass  # Linux's way to say that the other end is closed
    os.close(ours)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return re.sub(r"\x1b\[\d*m", "", said.decode())


COMMANDS = {
    ("broker", "list"): "broker.list_brokers",
    ("topics", "describe", "--at-min-isr-partitions"): "topics.describe",
    ("configs", "describe", "--broker", "1", "--all"): "configs.describe",
    ("log-dirs",): "log_dirs.log_dirs",
    ("sim", "guards"): "sim.list_guards",
}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_command_prints_every_value_whole_on_a_narrow_terminal_and_into_a_pipe(
    arguments: tuple[str, ...], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", cluster.bootstrap_servers)
    for topic in ("t" * 200, "orders"):
        subprocess.run([sys.executable, "-m", "heirlog", "topics", "create", topic], capture_output=True)
    command = [sys.executable, "-m", "heirlog", *arguments]
    rows = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)
    columns = next(columns for name, columns in TABLES.items() if name.startswith(f"{COMMANDS[arguments]}:"))
    assert rows
    for width in (40, 80):
        said = on_terminal(width, *arguments)
        assert_whole(columns, rows, said)
        assert max(cell_len(line) for line in said.splitlines()) <= width
    piped = subprocess.run(command, capture_output=True, check=True, text=True, env={**os.environ, "COLUMNS": "40"})
    assert_whole(columns, rows, piped.stdout)
    assert len(piped.stdout.splitlines()) == 1 + len(rows)
