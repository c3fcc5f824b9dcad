"""What messages and pages tell people to type: each command that they name exists, and its options are complete."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer

import heirlog
from heirlog.cli import habits
from heirlog.cli.app import tree

SOURCE = Path(heirlog.__file__).parent
ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAY_HINT = re.compile(r"heirlog [a-z]|--[a-z]")
TREE: Any = typer.main.get_command(tree())
PLACEHOLDER = re.compile(r"[A-Z][A-Z_.]+|<[\w. -]+>|\$[A-Z]+|\d+")
A_NAME = {("cli/pipeline.py", "heirlog pipeline check"), ("cli/audit.py", "heirlog audit")}
"""Not hints: the names of Spark applications."""
ELSEWHERE = ("testing/conformance", "testing/plugin", "server/")
"""Programs with options of their own."""
OTHERS_OPTIONS = {
    "--prefix",
    "--py-files",
    "--add-modules",
    "--supervisor",
    "--descriptor_set_out",
    "--include_imports",
}
"""Of other programs than heirlog."""


@cache
def messages() -> tuple[tuple[str, str], ...]:
    """Every text of the product that may name a command or an option, with its module."""
    return tuple(_messages())


def _messages() -> Iterator[tuple[str, str]]:
    """None of a docstring; 1 is what an f-string fills in."""
    for module in sorted(SOURCE.rglob("*.py")):
        where = module.relative_to(SOURCE).as_posix()
        source = module.read_text(encoding="utf-8")
        if not MAY_HINT.search(source):
            continue  # to parse all sources would take longer than to import them
        tree = ast.parse(source)
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.JoinedStr):
                skipped |= {id(part) for part in node.values}
                yield where, "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield where, node.value


def command_in(text: str) -> str | None:
    """The command line at the start of a sentence: a command, its options with their values, its placeholders.

    None where the sentence is about heirlog and names no command ("heirlog is up").
    """
    level, line, value_follows = TREE, ["heirlog"], False
    for word in text.split()[1:]:
        token = word.rstrip("`,;:.)'")
        below = getattr(level, "commands", None)
        if below is not None and token in below:
            level = below[token]
        elif below is not None or not (value_follows or token.startswith("-") or PLACEHOLDER.fullmatch(token)):
            break
        line.append(token)
        value_follows = not value_follows and any(
            token in parameter.opts and not parameter.is_flag for parameter in level.params if token.startswith("-")
        )
        if token != word:
            break
    return " ".join(line) if len(line) > 1 else None


def commands_in(text: str) -> Iterator[str]:
    """In backticks the whole is a command; elsewhere it ends where the sentence continues."""
    for quoted in re.finditer(r"`(heirlog [^`]*)`", text):
        yield " ".join(quoted[1].split())
    for start in re.finditer(r"(?<!`)\bheirlog (?=[a-z])", text):
        if found := command_in(text[start.start() :]):
            yield found


def lines_of(page: Path) -> Iterator[str]:
    """The command lines of a page's code blocks; one that ends with a backslash continues on the next."""
    code = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    code += re.findall(r"^    .*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    for line in "\n".join(code).replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|\||; |\s#|2>| >>? | < ", line):
            if part.strip().startswith("heirlog "):
                yield " ".join(part.replace(" ...", "").split())


def hints() -> list[tuple[str, str]]:
    """The commands in messages, each with its module. Not when this module is imported: it takes seconds."""
    return sorted({(where, found) for where, text in messages() for found in commands_in(text)} - A_NAME)


def page_lines() -> list[tuple[str, str]]:
    return sorted({(page.name, line) for page in PAGES for line in lines_of(page)})


def parse(line: str) -> None:
    """Parse, and run nothing. Raises the usage error that a person would get."""
    arguments = PLACEHOLDER.sub("1", line).split()[1:]
    level = TREE
    while arguments and (below := getattr(level, "commands", {}).get(arguments[0])) is not None:
        level = below
        del arguments[0]
    if hasattr(level, "commands"):
        # an assert would add what pytest says about it
        raise AssertionError(f"No such command: {line}")
    try:
        with patch.dict(os.environ):  # --context sets a variable
            level.make_context(line, arguments)
    except typer.Exit:
        assert "--help" in line


def cannot_be_typed(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Where, the command line, and what it would be refused with."""
    for where, line in lines:
        try:
            parse(line)
        except Exception as error:  # an AssertionError of `parse`, or a usage error of typer
            yield f"{where}: {line}: {error}"


def all_options(level: Any) -> Iterator[str]:
    yield from (name for parameter in level.params for name in (*parameter.opts, *parameter.secondary_opts))
    for below in getattr(level, "commands", {}).values():
        yield from all_options(below)


def test_hints_are_found() -> None:
    found = {hint for _, hint in hints()}
    assert {"heirlog topics list", "heirlog recover plan", "heirlog node --config server.properties"} <= found
    assert len(found) > 40
    assert len(page_lines()) > 50


@pytest.mark.parametrize("line", ["heirlog topics lst", "heirlog recover plan --al", "heirlog dump --deep"])
def test_a_wrong_hint_would_be_found(line: str) -> None:
    assert list(commands_in(f"it failed: `{line}` shows why")) == [line]
    with pytest.raises(Exception, match=r"No such|Missing"):
        parse(line)


def test_every_command_that_a_message_names_can_be_typed() -> None:
    assert list(cannot_be_typed(hints())) == []


def test_every_command_line_of_a_page_can_be_typed() -> None:
    assert list(cannot_be_typed(page_lines())) == []
    assert list(cannot_be_typed([("a page", "heirlog topics lst")])) == [
        "a page: heirlog topics lst: No such command: heirlog topics lst"
    ]


def test_every_option_in_a_message_is_one_of_a_command() -> None:
    known = {*all_options(TREE), "--help", *OTHERS_OPTIONS, *habits.OPTIONS}
    unknown = [
        f"{where}: {option}"
        for where, text in messages()
        if not where.startswith(ELSEWHERE)
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
        if option.rstrip("-") not in known
    ]
    assert unknown == []
