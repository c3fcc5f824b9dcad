"""How results reach a person (a table) or a program (`--json`)."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from heirlog.cli.errors import UsageError

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

PIPED_WIDTH = 200
"""Columns where standard output is no terminal: a table that is cut at 80 is useless to grep."""


def show_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def show_rows(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """columns: key of each row → heading, in order. JSON prints every key of every row."""
    if as_json:
        show_json(list(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns.values(), box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_cell(row[key]) for key in columns))
    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return ",".join(str(item) for item in value) or "-"
    return str(value)


def confirm(question: str) -> None:
    """Goes on only after a yes. Raises typer.Abort, and UsageError where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked here (standard input is no terminal): --yes goes on without asking")
    typer.confirm(question, abort=True, err=True)


def text_or_base64(data: bytes | None) -> str | dict[str, str] | None:
    """Bytes that are no UTF-8 appear as `{"base64": ...}`."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
