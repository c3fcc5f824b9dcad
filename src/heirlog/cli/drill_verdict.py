"""What a drill's verdict looks like on a terminal.

a number, a text     acknowledged          13720
by name              changes               alter 12, move 171
a list               waited for            1, 3
a list of objects    faults                kind kill, controllers 100 and 101, at_s 3.1, gap_s 0.4
                                           kind pause, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Result = dict[str, Any]
"""A verdict as JSON."""
FAILURE_SENTENCES = (
    "lost",
    "doubled",
    "wrong_bytes",
    "out_of_order",
    "wrong_timestamps",
    "skipped",
    "commits_lost",
    "half_made",
    "keys_lost",
    "changed_values",
    "watermark_went_back",
    "elected_before_caught_up",
    "wrong_modules",
    "failures",
    "findings_total",
)
"""Members of a verdict that name a broken promise when they are not zero or empty."""
FINDINGS_SHOWN = 10
NAME_WIDTH = 26


def verdict_lines(result: Result) -> Iterator[str]:
    for name, value in result.items():
        if name not in ("timeline", "drill", "findings"):
            # next to each other, it could not be seen where one object ends
            texts = list(map(_as_text, value)) if _has_objects(value) else [_as_text(value)]
            yield _line(_in_words(name), texts[0])
            yield from (_line("", text) for text in texts[1:])
    for finding in result.get("findings", [])[:FINDINGS_SHOWN]:
        yield f"  {finding['check']}: {finding['sentence']}"
    if isinstance(result.get("timeline"), str):
        yield _line("timeline", result["timeline"])


def failure_sentence(result: Result) -> str:
    bad = [
        f"{_in_words(name)}: {_as_text(value)}" for name, value in result.items() if name in FAILURE_SENTENCES and value
    ]
    return f"the drill failed: {', '.join(bad) or 'not every record was acknowledged'}"


def _line(name: str, text: str) -> str:
    return f"  {name:<{NAME_WIDTH}} {text}"


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def _has_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _as_text(value: Any) -> str:
    """Of a member of a verdict; a pair is what was before and after."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(map(_as_text, value))
    if isinstance(value, list):
        return ", ".join(map(_as_text, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_as_item(item)}" for name, item in value.items()) or "none"
    return "none" if value is None else str(value)


def _as_item(value: Any) -> str:
    """Between commas of its own."""
    return " and ".join(map(_as_text, value)) if isinstance(value, list) and value else _as_text(value)
