"""What was found in a data folder, as values: for a person in sentences, for a program as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Severity(Enum):
    DAMAGE = "damage"
    """Something is not as any stop, clean or unclean, leaves it, or records will be gone."""
    NOTE = "note"
    """Part of the life of a node that was stopped uncleanly: worth knowing, nothing to mend."""


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    kind: str
    """For programs: does not change with the sentence."""
    path: str
    sentence: str
    next_start: str = ""
    """What the node does about it when it starts again."""
    values: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        shown = {"severity": self.severity.value, "kind": self.kind, "path": self.path, "message": self.sentence}
        if self.next_start:
            shown["next_start"] = self.next_start
        return {**shown, **self.values}


@dataclass(slots=True)
class Report:
    """Of one log directory."""

    path: str
    cluster_id: str | None = None
    node_id: int | None = None
    stopped_cleanly: bool = False
    logs: int = 0
    segments: int = 0
    bytes: int = 0
    bytes_to_scan: int = 0
    """Bytes of segments that the next start reads again to rebuild their indexes."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        return all(finding.severity is Severity.NOTE for finding in self.findings)

    def damage(self, kind: str, path: str, sentence: str, next_start: str = "", **values: Any) -> None:
        self.findings.append(Finding(Severity.DAMAGE, kind, path, sentence, next_start, values))

    def note(self, kind: str, path: str, sentence: str, next_start: str = "", **values: Any) -> None:
        self.findings.append(Finding(Severity.NOTE, kind, path, sentence, next_start, values))

    def add(self, severity: Severity, kind: str, path: str, sentence: str, next_start: str = "", **values: Any) -> None:
        self.findings.append(Finding(severity, kind, path, sentence, next_start, values))

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "cluster_id": self.cluster_id,
            "node_id": self.node_id,
            "stopped_cleanly": self.stopped_cleanly,
            "healthy": self.healthy,
            "logs": self.logs,
            "segments": self.segments,
            "bytes": self.bytes,
            "bytes_to_scan": self.bytes_to_scan,
            "findings": [finding.as_json() for finding in self.findings],
        }
