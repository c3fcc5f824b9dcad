"""The tables and keys of a pipeline file, each read by name, type and default.

Reading never stops at an error: a wrong value becomes a problem with its line, and a harmless default replaces it. So a
wrong file gives all its problems at once, not only the first one. An unknown key is a problem too, most likely a
misspelling.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heirlog.spark.option_names import KAFKA
from heirlog.spark.pipeline.spec import Problem

_FROM_ENVIRONMENT = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
MISSING = object()
"""The default of a key that has none."""


class Document:
    """A whole file: the lines of its keys, the folder for relative paths, and its problems."""

    def __init__(self, values: Mapping[str, Any], lines: Mapping[tuple[str, ...], int], folder: Path) -> None:
        self.values = values
        self.lines = lines
        self.folder = folder
        self.problems: list[Problem] = []

    def problem(self, path: tuple[str, ...], sentence: str) -> None:
        while path and path not in self.lines:
            path = path[:-1]
        self.problems.append(Problem(self.lines.get(path, 1), sentence))

    def section(self, name: str) -> Section | None:
        found = self.values.get(name)
        if found is None:
            return None
        if not isinstance(found, dict):
            self.problem((name,), f"`{name}` is a table: write [{name}] on a line of its own")
            return None
        return Section(self, (name,), found)


class Section:
    """One table of the file. Every key that is asked for counts as known; `known()` reports the others."""

    def __init__(self, document: Document, path: tuple[str, ...], values: Mapping[str, Any]) -> None:
        self.document = document
        self.path_of_table = path
        self.values = values
        self.asked: set[str] = set()

    def wrong(self, key: str, sentence: str) -> None:
        self.document.problem((*self.path_of_table, key) if key else self.path_of_table, sentence)

    def ignore(self) -> None:
        """Report no more problems of this table: after the first one the others are only guesses."""

    def known(self, *others: str) -> None:
        names = sorted({*self.asked, *others})
        for key in self.values:
            if key not in names:
                close = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"known keys: {', '.join(names)}"
                self.wrong(key, f"`{key}` is unknown; {hint}")

    def _take(self, key: str, default: Any, fits: Callable[[Any], bool], kind: str, stand_in: Any) -> Any:
        self.asked.add(key)
        value = self.values.get(key, MISSING)
        if value is MISSING:
            if default is MISSING:
                place = f"[{'.'.join(self.path_of_table)}]" if self.path_of_table else "the file"
                self.wrong(key, f"{place} lacks `{key}`")
                return stand_in
            return default
        if not fits(value):
            self.wrong(key, f"`{key}` is {kind}, not {value!r}")
            return stand_in
        return value

    def text(self, key: str, default: Any = MISSING) -> Any:
        value = self._take(key, default, lambda v: isinstance(v, str) and bool(v.strip()), "a text", "")
        return self.from_environment(key, value) if isinstance(value, str) else value

    def from_environment(self, key: str, value: str) -> str:
        """A text that is only `${NAME}` or `${NAME:-default}` comes from the environment.

        So the file need not contain a password, and one file serves several clusters."""
        variable = _FROM_ENVIRONMENT.fullmatch(value)
        if variable is None:
            return value
        name, default = variable["name"], variable["default"]
        if name not in os.environ and default is None:
            self.wrong(key, f"{value} comes from the environment, where {name} is not set: export it first")
        return os.environ.get(name) or default or ""

    def path(self, key: str, default: Any = MISSING) -> Any:
        value = self.text(key, default)
        return value and self.absolute(key, value)

    def absolute(self, key: str, value: str) -> str:
        if not value or "://" in value:
            return value
        try:
            return str((self.document.folder / Path(value).expanduser()).resolve())
        except (ValueError, RuntimeError) as error:
            # a zero byte; the home of a user who is not there; a link to itself
            self.wrong(key, f"{value!r} is not a path: {error}")
            return ""

    def local_path(self, key: str) -> str:
        """A place on a file system that this process can rename on. Another's would become a folder `s3:` here."""
        value = str(self.path(key))
        if "://" in value:
            self.wrong(key, f"`{key}` must be a directory on this machine, not {value}: give a path")
            return ""
        return value

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._take(key, default, lambda v: isinstance(v, bool), "true or false", False))

    def choice(self, key: str, choices: tuple[str, ...], default: Any = MISSING) -> str:
        return str(self._take(key, default, lambda v: v in choices, f"one of {', '.join(choices)}", choices[0]))

    def texts(self, key: str) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)

        return tuple(self._take(key, [], fits, "a list of texts", []))

    def table(self, key: str) -> Section | None:
        found = self._take(key, None, lambda v: isinstance(v, dict), "a table", None)
        return None if found is None else Section(self.document, (*self.path_of_table, key), found)

    def options(self) -> dict[str, str]:
        """Spark's options are texts; numbers and truth values are written as Spark writes them."""
        options = {}
        section = self.table("options")
        for key, value in (section.values if section else {}).items():
            if isinstance(value, bool):
                options[key] = str(value).lower()
            elif isinstance(value, str | int | float):
                text = self.from_environment("options", str(value))
                places = key.lower() in ("quarantinepath", "commandconfig") or key.lower().endswith(".location")
                options[key] = section.absolute(key, text) if section and places else text
            elif isinstance(value, dict):
                self.wrong("options", f'quote the name of the option: "{key}.{next(iter(value), "")}" = …')
            else:
                self.wrong("options", f"the option `{key}` is a text, a number or true or false, not {value!r}")
        return options

    def topic_options(self, known: Sequence[str], keys: Mapping[str, str]) -> dict[str, str]:
        """Options of the format `heirlog`, whose names are not case-sensitive: in lower case.

        known: valid options besides `kafka.*`. keys: options that have a key of their own in the file.
        """
        options: dict[str, str] = {}
        there = {name.lower(): name for name in known}
        said = {name.lower(): key for name, key in keys.items()}
        for name, value in self.options().items():
            at, lower = (*self.path_of_table, "options", name), name.lower()
            if lower in options:
                self.wrong("options", f"the option `{name}` is given twice, in different case: keep one")
            elif lower in said:
                self.document.problem(at, f"the option `{name}` is already set by `{said[lower]}`: remove it")
            elif lower not in there and not lower.startswith(KAFKA):
                close = difflib.get_close_matches(lower, there, 1)
                hint = f"did you mean `{there[close[0]]}`?" if close else "docs/reference/spark.md lists the options"
                self.document.problem(at, f"the option `{name}` is unknown; {hint}")
            options[lower] = value
        return options

    def exactly_one(self, *keys: str) -> str | None:
        self.asked.update(keys)
        found = [key for key in keys if key in self.values]
        if len(found) == 1:
            return found[0]
        listed = " or ".join(f"`{key}`" for key in keys)
        misspelt = {key: close for key in self.values if (close := difflib.get_close_matches(key, keys, 1, 0.75))}
        if not found and misspelt:
            for key, close in misspelt.items():
                self.wrong(key, f"`{key}` is unknown; did you mean `{close[0]}`?")
            return None
        name = ".".join(self.path_of_table)
        self.wrong(found[1] if found else "", f"[{name}] needs one of {listed}" + (", not several" if found else ""))
        return None
