"""What a handler hands back: the records to append, and how to answer once they are committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from heirlog.controller.election import Basis


@dataclass(slots=True)
class Outcome:
    """`respond` gets the offset of the first record (or, without records, the offset after the last one appended)."""

    respond: Callable[[int], Any]
    records: list[Any] = field(default_factory=list)
    elections: list[Basis] = field(default_factory=list)
    """One entry per leader elected by `records`: what gets counted."""
    refusal: str = ""
    """Why the request was refused, where the answer has no room for a sentence: it is logged."""


def answer(response: Any, refusal: str = "") -> Outcome:
    """An outcome that changes nothing."""
    return Outcome(lambda base_offset: response, refusal=refusal)
