"""Which names a scenario file may use, layer by layer, and what kind of value each holds.

`vocabulary.json` lists them as paths: `partitions[].isr` is a member of each element of a list, `<id>` a number as key.
Below `config` the names are those of configurations and topics, and are checked against the product's definitions.

A name that is not listed fails its scenario, with the name in the message. If the runner skipped the name, it would
pass scenarios that it has not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.topic_configs import TOPIC_CONFIGS

LAYERS: Final[Mapping[str, Mapping[str, Any]]] = json.loads(
    resources.files(__package__).joinpath("vocabulary.json").read_text(encoding="utf-8")
)

_KINDS: Final = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "[]": lambda value: isinstance(value, list),
    "{}": lambda value: isinstance(value, dict),
}


class UnknownName(Exception):
    """The file uses a name that is no part of the schema, or that is not implemented."""


def check(scenario: Mapping[str, Any]) -> None:
    """Raises UnknownName with the first name or value that the schema does not have."""
    layer = LAYERS.get(scenario["layer"])
    if layer is None:
        raise UnknownName(f"layer {scenario['layer']}")
    _check_members(scenario.get("setup", {}), layer["setup"], "setup")
    for step in scenario["steps"]:
        event = dict(step["event"])
        kind = event.pop("type", None)
        members = layer["events"].get(kind)
        if members is None:
            raise UnknownName(f"event {kind}")
        _check_members(event, members, f"event {kind}")
        _check_members(step.get("expect", {}), layer["expect"], "expect")


def _check_members(given: Mapping[str, Any], known: Mapping[str, str], where: str) -> None:
    for path, name, value in _walk(given, ""):
        if path.startswith("config."):
            _check_config(path.split(".", 2)[1], name, value, where)
        elif path not in known and not _above(path, known):
            raise UnknownName(f"{where}: {path}")
        elif path in known and not any(_is(value, kind) for kind in known[path].split("/")):
            raise UnknownName(f"{where}: {path} is {json.dumps(value)}, not {known[path]}")


def _above(path: str, known: Mapping[str, str]) -> bool:
    return any(other.startswith((path + ".", path + "[]")) for other in known)


def _walk(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, Any]]:
    """(path, last name, value) of everything inside."""
    for name, child in value.items():
        key = "<id>" if name.isdigit() else name
        here = f"{path}.{key}" if path else key
        yield here, name, child
        if isinstance(child, dict):
            yield from _walk(child, here)
        elif isinstance(child, list):
            for element in child:
                if isinstance(element, dict):
                    yield from _walk(element, f"{here}[]")


def _check_config(scope: str, name: str, value: Any, where: str) -> None:
    if isinstance(value, dict):
        if scope not in ("static", "cluster", "broker", "topic"):
            raise UnknownName(f"{where}: config.{scope}")
        return
    if name not in (TOPIC_CONFIGS if scope == "topic" else SERVER_CONFIGS):
        raise UnknownName(f"{where}: config.{scope} {name}")
    if not isinstance(value, str):
        raise UnknownName(f"{where}: {name} is {json.dumps(value)}, not str")


def _is(value: Any, kind: str) -> bool:
    if kind.startswith("[") and kind != "[]":
        if not isinstance(value, list):
            return False
        options = _alternatives(kind[1:-1])
        return all(any(_is(element, option) for option in options) for element in value)
    judge = _KINDS.get(kind)
    return judge is None or bool(judge(value))


def _alternatives(kind: str) -> list[str]:
    """`[int]|str` is `[int]` or `str`: split where no bracket is open."""
    parts, depth = [""], 0
    for char in kind:
        depth += (char == "[") - (char == "]")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
