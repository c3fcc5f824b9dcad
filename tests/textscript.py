"""Tests as text: a command per line, and below it, indented, what came of it. A `#` begins a comment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

INDENT = "    "


class ScriptError(Exception):
    """A line that is no command."""


class Script(Protocol):
    def run(self, words: list[str]) -> list[str]:
        """Run one command; the lines that describe its result. Raises ScriptError."""


@dataclass(frozen=True)
class Step:
    line: str
    """The command as written, with its comment."""
    expected: list[str]


def steps(text: str) -> Iterator[Step]:
    """Blank lines and lines of comment are steps without a command."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        expected = []
        while at < len(lines) and lines[at].startswith(INDENT):
            expected.append(lines[at].strip())
            at += 1
        yield Step(line, expected)


def played(text: str, script: Script) -> str:
    """The text with the results as they are."""
    out = []
    for step in steps(text):
        out.append(step.line)
        words = step.line.partition("#")[0].split()
        if words:
            out += [INDENT + line for line in script.run(words)]
    return "\n".join(out) + "\n"


def play(path: Path, make: Callable[[], Script], rewrite: bool) -> tuple[str, str]:
    """The text of the file, and the text with the results as they are; `rewrite` writes the latter into the file."""
    text = path.read_text(encoding="utf-8")
    result = played(text, make())
    if rewrite:
        path.write_text(result, encoding="utf-8")
        text = result
    return text, result
