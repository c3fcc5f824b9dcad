"""How results reach a person (a table, or blocks) or a program (`--json`).

    no terminal (a file, a pipe)            a table, each row one line
    the rows fit the terminal's width       the same; so are headings without rows
    they fit below narrow headings          a table; headings such as LeaderEpoch continue on lines of their own, and
                                            columns may have one blank between them instead of two
    they fit once the last column wraps     a table; the last column continues on lines of its own
    they fit once more columns wrap         a table; the widest columns continue on lines of their own
    otherwise                               a block for each row: heading and value, a line for each column

A value is never cut: who reads it may want to paste it. So a command puts the column of free text, or of paths, last.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
NamesOnly = Annotated[bool, typer.Option("--names", "-q", help="Print only the names, one per line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", "--force", help="Do not ask for confirmation.")]

GAP, NARROW_GAP = "  ", " "
WRAPPED_WIDTH_MIN = 24
"""Width that a value needs in a column to stay readable; with less room it is below its heading or its row."""


def show_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def show_names(names: Iterable[Any], as_json: bool) -> None:
    """For a loop of a shell: each name once, in the order in which it comes. Raises UsageError."""
    if as_json:
        raise UsageError("--names and --json exclude each other")
    for name in dict.fromkeys(map(cell, names)):
        print(name)


def show_rows(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """columns: key of each row → heading, in order. JSON prints every key of every row."""
    if as_json:
        show_json(list(rows))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in laid_out(columns, rows, console.width if sys.stdout.isatty() else None):
        console.print(line)


def laid_out(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], width: int | None) -> list[Text]:
    """The lines for a terminal of `width` columns, or for a pipe (None): see the module."""
    from rich.cells import cell_len

    headings = list(columns.values())
    cells = [[cell(row[key]) for key in columns] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headings, *cells, strict=True)]
    if width is None or not rows or sum(widths) + len(GAP) * (len(widths) - 1) <= width:
        return _table([headings], cells, widths, GAP)
    narrow = [
        max(max(map(len, _words(heading))), *map(cell_len, column))
        for heading, *column in zip(headings, *cells, strict=True)
    ]
    for gap, floors in (
        (GAP, narrow),
        (NARROW_GAP, narrow),
        (GAP, [*narrow[:-1], min(narrow[-1], WRAPPED_WIDTH_MIN)]),
        (GAP, [min(each, WRAPPED_WIDTH_MIN) for each in narrow]),
    ):
        fitting = _fitting(narrow, floors, width - len(gap) * (len(narrow) - 1))
        if fitting is not None:
            return _table(_folded(headings, fitting), cells, fitting, gap)
    return _blocks(headings, cells, width)


def _fitting(widths: Sequence[int], floors: Sequence[int], room: int) -> list[int] | None:
    """Widths that are as wide as `room` at most, the widest column narrowed first; None if a floor forbids it."""
    if sum(floors) > room:
        return None
    fitting = list(widths)
    while sum(fitting) > room:
        widest = max((at for at in range(len(fitting)) if fitting[at] > floors[at]), key=lambda at: (fitting[at], at))
        fitting[widest] -= 1
    return fitting


def _words(heading: str) -> list[str]:
    """LeaderEpoch has two."""
    return re.findall(r"[A-Z]+[^A-Z]*|[^A-Z]+", heading) or [""]


def _folded(headings: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """The lines of headings, none of which is wider than its column."""
    columns = []
    for heading, width in zip(headings, widths, strict=True):
        lines = [""]
        for word in _words(heading):
            if len(lines[-1]) + len(word) <= width:
                lines[-1] += word
            else:
                lines.append(word)
        columns.append(lines)
    return [list(line) for line in zip_longest(*columns, fillvalue="")]


def _table(headings: list[list[str]], cells: list[list[str]], widths: list[int], gap: str) -> list[Text]:
    from rich.cells import set_cell_size
    from rich.text import Text

    lines = []
    for number, row in enumerate([*headings, *cells]):
        style = "" if number >= len(headings) else "bold"
        columns = [_wrapped(each, width) for each, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*columns, fillvalue=""):
            padded = [set_cell_size(part, width) for part, width in zip(parts[:-1], widths, strict=False)]
            lines.append(Text(gap.join([*padded, parts[-1]]).rstrip(), style))
    return lines


def _blocks(headings: list[str], cells: list[list[str]], width: int) -> list[Text]:
    """A row's values one per line, next to their headings or, on a very narrow terminal, below them."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    label_width = max(map(cell_len, headings)) + len(GAP)
    is_beside = width - label_width >= WRAPPED_WIDTH_MIN
    indent = " " * (label_width if is_beside else len(GAP))
    lines: list[Text] = []
    for row in cells:
        if lines:
            lines.append(Text())
        for heading, cell in zip(headings, row, strict=True):
            values = _wrapped(cell, max(2, width - len(indent)))
            if is_beside:
                lines.append(Text.assemble((set_cell_size(heading, label_width), "bold"), values.pop(0)))
            else:
                lines.append(Text(heading, "bold"))
            lines += [Text(indent + value) for value in values]
    return lines


def _wrapped(value: str, width: int) -> list[str]:
    """At blanks where there are some; a word that is too long behind a sign such as / or a dot, else anywhere."""
    from rich.cells import cell_len

    if cell_len(value) <= width:
        return [value]
    lines = [""]
    for word in re.findall(r"\S+\s*|\s+", value):
        parts = [word] if cell_len(word.rstrip()) <= width else _parts_of(word, width)
        for part in parts:
            if lines[-1] and cell_len(lines[-1] + part.rstrip()) > width:
                lines.append("")
            lines[-1] += part
    return [line.rstrip() for line in lines]


def _parts_of(word: str, width: int) -> list[str]:
    from rich.cells import cell_len, chop_cells

    parts = re.findall(r"[^./,:_-]*[./,:_-]+\s*|[^./,:_-]+", word)
    return [piece for part in parts for piece in ([part] if cell_len(part) <= width else chop_cells(part, width))]


def cell(value: Any) -> str:
    """As a table shows it, on one line."""
    if value is None:
        return "none"
    if isinstance(value, list):
        return ",".join(map(cell, value)) or "-"
    # a line feed would break the row, and an escape sequence of another's group name the terminal
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def confirm(question: str) -> None:
    """Returns only after a yes, which `Yes` spares. Raises CommandError, and UsageError without a terminal."""
    if not sys.stdin.isatty():
        raise UsageError("this command asks for confirmation, and standard input is not a terminal: give --yes")
    if not typer.confirm(question, err=True):
        raise CommandError("the answer was no: nothing is changed")


def text_or_base64(data: bytes | None) -> str | dict[str, str] | None:
    """Bytes that are not UTF-8 become `{"base64": ...}`."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
