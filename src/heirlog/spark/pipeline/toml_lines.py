"""The line of a key in a TOML file.

`tomllib` reads values and forgets places; a person who mends a file wants the line. This finds the lines of table
headers and keys only, in a text that tomllib has accepted, so it needs no grammar beyond quotes and brackets.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*\[+\s*([^\]]+?)\s*\]+")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_.\- ]|"[^"]*"|'[^']*')+?)\s*=""")
_NO_BRACKETS = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'|#.*""")
"""Texts and comments: their brackets close nothing."""
_MULTILINE = ('"""', "'''")


def line_of_each_key(text: str) -> dict[tuple[str, ...], int]:
    """The first line of every table and key, as the path of its names; lines count from 1."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    closing = ""
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        if closing:
            if closing in line:
                closing = ""
            continue
        if depth <= 0:
            depth = 0
            if header := _HEADER.match(line):
                table = _path(header[1])
                lines.setdefault(table, number)
                continue
            if key := _KEY.match(line):
                lines.setdefault((*table, *_path(key[1])), number)
        closing = next((quotes for quotes in _MULTILINE if line.count(quotes) % 2), "")
        # an array over several lines: what looks like a header inside it is none
        bare = _NO_BRACKETS.sub("", line)
        depth += bare.count("[") - bare.count("]")
    return lines


def _path(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted))
