"""Java's .properties text: `name=value`, `#` comments, line continuation, and escapes with a backslash."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from heirlog.local.errors import LocalError

if TYPE_CHECKING:
    from pathlib import Path

    from heirlog.metadata.config_def import ConfigError, StaticConfig


FOR_ONE_START = {"heirlog.accept.older.metadata": "--accept-older-metadata"}
"""What a file must not hold, because it would count at every start, and the flag of `heirlog node` that sets it."""


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<one>.))", re.DOTALL)
_RENDERED = {r"\\": "\\", r"\t": "\t", r"\n": "\n", r"\r": "\r", r"\f": "\f"}
_END_BLANKS = re.compile(r"(?<!\\)\s+$")
_NAME_END = re.compile(r"(?P<name>(?:\\.|[^\\=:\s])*)\s*(?:[=:]\s*)?(?P<value>.*)", re.DOTALL)


def parse(text: str) -> dict[str, str]:
    """Later entries win, as in Java."""
    found: dict[str, str] = {}
    pending = ""
    for raw in text.splitlines():
        line = pending + _END_BLANKS.sub("", raw.lstrip())
        if not pending and (not line or line[0] in "#!"):
            continue
        pending = ""
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            pending = line[:-1]
            continue
        name, value = _split(line)
        found[name] = value
    if pending:
        name, value = _split(pending)
        found[name] = value
    return found


def _split(line: str) -> tuple[str, str]:
    """At the first `=`, `:` or blank, whichever comes first; `listeners=PLAINTEXT://x:1` keeps its colons."""
    found = _NAME_END.match(line)
    assert found is not None, "it matches any text"
    return _unescaped(found["name"]), _unescaped(found["value"])


def _unescaped(text: str) -> str:
    """As Java: a backslash before any other character than these is dropped."""

    def character(found: re.Match[str]) -> str:
        if found["code"]:
            return chr(int(found["code"], 16))
        return _ESCAPES.get(found["one"], found["one"])

    return _ESCAPE.sub(character, text)


def render(properties: Mapping[str, str], comment: str) -> str:
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [rendered(name, value) for name, value in properties.items()]
    return "\n".join(lines) + "\n"


def rendered(name: str, value: str) -> str:
    """The line of one property. `parse` and Java read back what is given."""
    for escaped, character in _RENDERED.items():
        value = value.replace(character, escaped)
    if value[:1] == " ":
        value = f"\\{value}"
    if value[-1:] == " " and value != "\\ ":
        value = f"{value[:-1]}\\ "
    return f"{name}={value}"


def read(path: str | Path) -> dict[str, str]:
    """Raises LocalError naming the file."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read())
    except FileNotFoundError:
        raise LocalError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LocalError(f"cannot read the configuration file {path}: {error}") from error


def read_static(path: str | Path, overrides: Mapping[str, str] | None = None) -> StaticConfig:
    """The configuration of one node; `overrides` beat the file, and only they may set `FOR_ONE_START`.

    Raises LocalError naming the file and, in it, the property.
    """
    from heirlog.metadata.config_def import ConfigError, parse_static

    found = read(path)
    for name, flag in FOR_ONE_START.items():
        if name in found:
            raise LocalError(
                f"{path}: {name} is for one start only, and a file would set it for every start: remove the line, and "
                f"start the node with {flag} where you need it"
            )
    try:
        return parse_static({**found, **(overrides or {})})
    except ConfigError as error:
        raise LocalError(f"{path}: {config_sentence(error)}") from error


def config_sentence(error: ConfigError) -> str:
    """The error, and the name that was meant where there is one."""
    from heirlog.local.similar_names import server_config_like
    from heirlog.metadata.definition import MISSPELT

    # a value that is wrong has a name that exists
    like = server_config_like(error.name) if error.sentence.endswith(MISSPELT) else None
    return f"{error}; did you mean {like}?" if like else str(error)


def refuse_copied(path: str, config: StaticConfig) -> None:
    """A node of a data folder that was copied, and that `heirlog up` has not started since, names the original's logs.

    The node would work on them. Raises LocalError where the original is there, with such a node.
    """
    node_dir, name = os.path.split(os.path.realpath(path))
    data, node = os.path.split(node_dir)
    for log_dir in config.log_dirs:
        original, found, rest = os.path.realpath(log_dir).rpartition(f"/{node}/")
        theirs = f"{original}/{node}/{name}"
        if found and original != data and os.path.isdir(f"{node_dir}/{rest}") and os.path.exists(theirs):
            raise LocalError(
                f"{path} is a copy of {theirs} and names its log directory {log_dir}: this node would use the "
                f"original's files. Run heirlog up --data {data} once, which corrects it, or correct log.dirs"
            )
