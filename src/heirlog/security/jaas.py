"""The value of sasl.jaas.config: one login module with its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="it's \\"secret\\"";

Words are separated by white space and by comments of Java, which begin where a word could. A value may be in quotes, in
which a backslash escapes the next character. The semicolon ends the entry. Errors name the position as a number of
characters and never show the text, because most of it is secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?: (?P<end>;) | (?P<equals>=) | "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^'\\]|\\.)*)'
          | (?P<word>[^\s;="']+) )""",
    re.VERBOSE | re.DOTALL,
)
_BETWEEN = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


@dataclass(frozen=True, slots=True)
class LoginModule:
    name: str
    """Without its package: PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule, ..."""
    options: dict[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Raises ValueError with a sentence that holds nothing of the text."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("end", ";"):
        raise ValueError("it is not of the form 'LoginModule required option=\"value\" ...;' (is the ; missing?)")
    (kind, name), (_, flag), *rest = tokens[:-1]
    if kind != "word" or flag.lower() not in _CONTROL_FLAGS:
        raise ValueError("it does not begin with a login module and 'required'")
    if ("end", ";") in rest:
        raise ValueError("it names more than one login module")
    if len(rest) % 3:
        raise ValueError("its options are not all of the form name=value")
    options: dict[str, str] = {}
    for (name_kind, option), (middle, _), (value_kind, value) in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if name_kind != "word" or middle != "equals" or value_kind in ("equals", "end"):
            raise ValueError("its options are not all of the form name=value")
        options[option] = value
    return LoginModule(name.rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = _after_comments(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"the quotes that open behind its first {position} characters are never closed")
        kind = match.lastgroup
        value = match[kind]
        if kind in ("double", "single"):
            kind, value = "quoted", re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        tokens.append((kind, value))
        position = _after_comments(text, match.end())
    return tokens


def _after_comments(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    assert found is not None, "it may be empty"
    return found.end()
