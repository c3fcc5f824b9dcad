"""`ssl.principal.mapping.rules`: from the subject of a client's certificate to the name of its principal.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),.*$/$1@example/L,DEFAULT

Rules are separated by commas. `RULE:pattern/replacement/` may have an L or a U behind it, for lower and upper case; a
backslash escapes a slash. The first rule whose pattern matches the *whole* subject decides, and its replacement
replaces every match of the pattern in the subject. DEFAULT takes the subject as it is. Without a rule that matches, the
connection is closed.

Patterns are Java's. What Python's `re` reads in another way is translated (named groups, ASCII classes) or refused
(\\p{...}, && in a class). A subject has a maximum length (`distinguished_name.py`) and is mapped once per connection,
so that a slow pattern costs little.

Source: KIP-371.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s,]*")
_END: Final = re.compile(r"\s*(?:,|$)")
_REPLACEMENT_PART: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}", re.DOTALL)


class MappingError(ValueError):
    """The rules cannot be used; one sentence that names the rule."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None
    """None: DEFAULT."""
    replacement: str = ""
    case: str = ""

    def applied_to(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self._replacement_for, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replacement_for(self, match: re.Match[str]) -> str:
        def part(found: re.Match[str]) -> str:
            escaped, number, group = found.groups()
            if escaped is not None:
                return str(escaped)
            if number is not None:
                known = int(number) <= match.re.groups
                return (match[int(number)] or "") if known else found[0]
            return (match[group] or "") if group in match.re.groupindex else found[0]

        return _REPLACEMENT_PART.sub(part, self.replacement)


class PrincipalMapper:
    """Raises MappingError."""

    def __init__(self, rules: str) -> None:
        self._rules = tuple(_parsed(rules)) or (_Rule(None),)

    def name_of(self, subject: str) -> str | None:
        """None: no rule matches, so this client must not connect."""
        for rule in self._rules:
            name = rule.applied_to(subject)
            if name is not None:
                return name
        return None


def _parsed(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    position = _end_of(_BETWEEN, text, 0)
    while position < len(text):
        rest = text[position:]
        match = _RULE.match(text, position)
        if match is not None:
            rules.append(_Rule(_compiled(match[1]), match[2], match[3]))
            position = match.end()
        elif rest.startswith(DEFAULT):
            rules.append(_Rule(None))
            position += len(DEFAULT)
        else:
            raise MappingError(f"{rest!r} does not begin with DEFAULT or RULE:pattern/replacement/")
        if _END.match(text, position) is None:
            raise MappingError(f"{text[position:]!r} follows a rule; separate rules by commas")
        position = _end_of(_BETWEEN, text, position)
    return rules


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _compiled(pattern: str) -> re.Pattern[str]:
    if re.search(r"\\[pP]\{|\[[^\]]*&&", pattern):
        raise MappingError(f"{pattern!r} uses \\p{{...}} or && in a class, which only Java knows; write the characters")
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), re.ASCII)
    except re.error as error:
        raise MappingError(f"{pattern!r} is not a regular expression: {error}") from error
