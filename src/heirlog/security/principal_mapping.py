"""`ssl.principal.mapping.rules`: from the subject of a client's certificate to the name of its principal.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,RULE:^CN=(.*?),.*$/$1@example/L,DEFAULT

Rules are separated by commas. `RULE:pattern/replacement/` may have an L or a U behind it, for lower and upper case; a
backslash escapes a slash. The first rule whose pattern matches the *whole* subject decides, and its replacement
replaces every match of the pattern in the subject. DEFAULT takes the subject as it is. Without a rule that matches, the
connection is closed.

Patterns are Java's, and RE2 runs them: its time grows with the length of the subject, whatever the pattern is. With
Java or Python one `(,.*)*` and the certificate of a client that fits it badly would stop a node for years. So what RE2
does not have is refused at the start (look-around, back-references, possessive quantifiers). So is what it reads in
another way than Java: \\p{...}, \\C, (?U), a class within a class. Java's `.` ends at more line ends than RE2's: no
rule but DEFAULT takes a subject that has one.

Source: KIP-371; Kafka's SslPrincipalMapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s,]*")
_END: Final = re.compile(r"\s*(?:,|$)")
_REPLACEMENT_PART: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_OTHERWISE_IN_JAVA: Final = re.compile(r"\[[^\]]*(?:\[|&&)|\(\?[a-z-]*[A-Z]")
"""Of a pattern without what is escaped in it."""
_LINE_ENDS: Final = re.compile("[\r\n\x85\u2028\u2029]")
_FOLDED_TO_ASCII: Final = re.compile("[\u017f\u212a]")
"""Letters that are an s and a k to RE2 where case does not matter, and not to Java."""
PATTERN_MAX_BYTES: Final = 1 << 20
"""Memory of one compiled pattern."""


class MappingError(ValueError):
    """The rules cannot be used; one sentence that names the rule."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Any
    """Compiled by RE2. None: DEFAULT."""
    replacement: str = ""
    case: str = ""

    def applied_to(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if _LINE_ENDS.search(subject) or ("(?" in self.pattern.pattern and _FOLDED_TO_ASCII.search(subject)):
            return None
        if self.pattern.fullmatch(subject) is None:
            return None
        name: str = self.pattern.sub(self._replacement_for, subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name

    def _replacement_for(self, match: Any) -> str:
        def part(found: re.Match[str]) -> str:
            escaped, number, group = found.groups()
            if escaped is not None:
                return str(escaped)
            if number is not None:
                return self._group(match, number)
            return (match[group] or "") if group in self.pattern.groupindex else found[0]

        return _REPLACEMENT_PART.sub(part, self.replacement)

    def _group(self, match: Any, digits: str) -> str:
        """As many digits as there are groups for, as in Java: `$12` is group 1 and a 2 where there are two groups."""
        for length in range(len(digits), 0, -1):
            if int(digits[:length]) <= self.pattern.groups:
                return (match[int(digits[:length])] or "") + digits[length:]
        return f"${digits}"


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


def _compiled(pattern: str) -> Any:
    bare = _ESCAPED.sub("", pattern)
    if re.search(r"\\[pPC]", pattern) or _OTHERWISE_IN_JAVA.search(bare):
        raise MappingError(
            f"{pattern!r} uses \\p{{...}}, \\C, a flag in capital letters, or && or [ in a class, which RE2 reads in "
            "another way than Java; write the characters"
        )
    import re2  # a library that most nodes never need

    options = re2.Options()
    options.max_mem = PATTERN_MAX_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise MappingError(
            f"{pattern!r} is not a regular expression of RE2, which has no look-around, back-references and possessive "
            f"quantifiers: {why}"
        ) from error
