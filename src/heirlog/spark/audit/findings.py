"""What an audit finds, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class AuditFinding:
    kind: str
    """For programs: does not change with the sentence."""
    topic: str
    """Empty: it concerns no partition."""
    partition: int
    """-1: it concerns no partition."""
    replica: int
    """The node whose log is wrong; -1: it is in the metadata."""
    offset: int
    """The first one that is affected, of the partition or, where `replica` is -1, of the metadata log; -1: unknown."""
    sentence: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
