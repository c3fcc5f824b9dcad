"""A difference that is meant, and what the modules that name such differences share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from answers.players import Difference
from answers.shape import Plan

UNKNOWN_SERVER_ERROR, INVALID_REQUEST = -1, 42
SHOWN_NAMES = "shown-"
"""Begins the names of what the examples are about."""
A, B, C, D = (f"{SHOWN_NAMES}{letter}" for letter in "abcd")
UNKNOWN_PARTITIONS = (3, 100)


@dataclass(frozen=True)
class Deviation:
    name: str
    row: str
    """How the row begins."""
    applies: Callable[[Difference], bool]
    examples: tuple[Plan, ...] = ()
    is_harmless: bool = True
    """The nodes hold the same afterwards: the sequence continues with the same names."""
    by_chance: bool = False
    """Too rare to be seen in each run, and without an example."""


def at(difference: Difference, *ends: str) -> bool:
    return difference.path.endswith(ends)


def missing_here(difference: Difference) -> bool:
    return bool(difference.ours == "not there")


def new_topics(*topics: dict[str, Any]) -> Plan:
    return Plan(19, 7, {"topics": list(topics), "timeout_ms": 20_000, "validate_only": False})


def topic(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []} | fields


def asked(partition: int) -> dict[str, int]:
    return {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
