"""What the fields mean, from `specs/fields.txt`; the head of that file describes its lines."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from codegen.spec import BadSpec, FieldSpec


@dataclass(slots=True)
class Line:
    patterns: list[str]
    """Of holders; empty for all of them."""
    text: str
    is_used: bool = False

    def says(self, holder: str) -> bool:
        return not self.patterns or any(fnmatchcase(holder, pattern) for pattern in self.patterns)


class Meanings:
    """The meaning of each field. Remembers which lines were needed, so that a test finds the ones that are not."""

    def __init__(self, path: Path) -> None:
        """Raises BadSpec."""
        self.lines: dict[str, list[Line]] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            head, colon, text = line.partition(": ")
            name, _, patterns = head.partition(" @ ")
            if not colon or not text.strip():
                raise BadSpec(f"{path.name}:{number}: not of the form `Field: meaning`")
            self.lines.setdefault(name, []).append(Line(patterns.split(", ") if patterns else [], text.strip()))

    def of(self, field: FieldSpec, holder: str) -> str:
        """`holder` is the message or record, for a nested struct `message/struct`. Raises BadSpec."""
        if field.meaning is not None:
            return field.meaning
        found = [line for line in self.lines.get(field.name, []) if line.says(holder)]
        if not found:
            raise BadSpec(f"{holder}.{field.name}: say in specs/fields.txt, or behind a # on its line, what it means")
        found[-1].is_used = True
        return found[-1].text

    def unused(self) -> list[str]:
        return [f"{name}: {line.text}" for name, lines in self.lines.items() for line in lines if not line.is_used]
