"""The shapes of docs/reference/json.md, and what of a value does not have its command's shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TOKEN = re.compile(r"\*|\.\.\.|[A-Za-z_][\w.]*\??|[\[\]{}:,|]")
SIMPLE = {"string", "integer", "number", "boolean", "null", "any"}
ANY_KEY = "*"
Shape = list[Any]
"""Alternatives: a name of SIMPLE, ("array", shape), or ("object", {key: (shape, may be missing)}, more keys). The key
`*` has the shape of keys that have no name on the page."""


@cache
def shapes() -> dict[str, Shape]:
    """By command. Raises ValueError where the page cannot be read."""
    page = (REFERENCE / "json.md").read_text(encoding="utf-8")
    found = re.findall(r"^## `heirlog ([^`]+)`\n(?:\n[^`#\n][^\n]*)*\n+```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return {command: _read(text) for command, text in found}


def _read(text: str) -> Shape:
    tokens = TOKEN.findall(text)
    shape, rest = _alternatives(tokens)
    if rest:
        raise ValueError(f"{text!r}: what is {rest}?")
    return shape


def _alternatives(tokens: list[str]) -> tuple[Shape, list[str]]:
    first, tokens = _one(tokens)
    found = [first]
    while tokens and tokens[0] == "|":
        other, tokens = _one(tokens[1:])
        found.append(other)
    return found, tokens


def _one(tokens: list[str]) -> tuple[Any, list[str]]:
    token, *tokens = tokens
    if token == "[":
        inner, (closing, *tokens) = _alternatives(tokens)
        if closing != "]":
            raise ValueError(f"] is missing before {closing}")
        return ("array", inner), tokens
    if token == "{":
        return _object(tokens)
    if token not in SIMPLE:
        raise ValueError(f"{token} is no type")
    return token, tokens


def _object(tokens: list[str]) -> tuple[Any, list[str]]:
    keys: dict[str, tuple[Shape, bool]] = {}
    more = False
    while True:
        token, *tokens = tokens
        if token == "...":
            more = True
        else:
            if tokens[0] != ":":
                raise ValueError(f"{token} has no type")
            shape, tokens = _alternatives(tokens[1:])
            keys[token.removesuffix("?")] = shape, token.endswith("?") or token == ANY_KEY
        separator, *tokens = tokens
        if separator == "}":
            return ("object", keys, more), tokens
        if separator != ",":
            raise ValueError(f"{separator} after {token}")


def mistakes_of(command: str, value: Any) -> list[str]:
    """Of what a command prints as one value, where a test has the value itself."""
    return [f"heirlog {command}: {each}" for each in _mistakes(shapes()[command], value, "")]


def mistakes(arguments: Sequence[str], out: str) -> list[str]:
    """Of what a command line printed with --json. Raises KeyError for a command that the page does not have."""
    words = [str(argument) for argument in arguments]
    command = next(
        name for name in sorted(shapes(), key=len, reverse=True) if words[: len(name.split())] == name.split()
    )
    try:
        values = [json.loads(out)]
    except ValueError:
        values = [json.loads(line) for line in out.splitlines()]
    return [f"heirlog {command}: {each}" for value in values for each in _mistakes(shapes()[command], value, "")]


def _mistakes(shape: Shape, value: Any, path: str) -> list[str]:
    found = [list(_of_one(one, value, path)) for one in shape]
    # of several alternatives the nearest one says most
    return min(found, key=len)


def _of_one(shape: Any, value: Any, path: str) -> Iterator[str]:
    if isinstance(shape, str):
        if not _is(shape, value):
            yield f"{path or 'the value'} is not of type {shape}: {value!r}"
    elif shape[0] == "array":
        if not isinstance(value, list):
            yield f"{path or 'the value'} is no array: {value!r}"
            return
        for number, item in enumerate(value):
            yield from _mistakes(shape[1], item, f"{path}[{number}]")
    elif not isinstance(value, dict):
        yield f"{path or 'the value'} is no object: {value!r}"
    else:
        _, keys, more = shape
        yield from (
            f"{path}.{key} is missing" for key, (_, missing) in keys.items() if key not in value and not missing
        )
        for key, item in value.items():
            if key in keys or ANY_KEY in keys:
                yield from _mistakes(keys.get(key, keys.get(ANY_KEY))[0], item, f"{path}.{key}")
            elif not more:
                yield f"{path}.{key} is not on the page"


def _is(name: str, value: Any) -> bool:
    if name == "null" or value is None:
        return name == "any" or (name == "null" and value is None)
    if isinstance(value, bool):
        return name in ("boolean", "any")
    kinds = {"string": str, "integer": int, "number": (int, float), "any": object}
    return name in kinds and isinstance(value, kinds[name])  # type: ignore[arg-type]
