"""One metric family before it is text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

Labels: TypeAlias = Mapping[str, str]
Sample: TypeAlias = tuple[Labels, float]
NO_LABELS: Labels = {}


class Kind(Enum):
    COUNTER = "counter"
    """Its name ends in `_total`."""
    GAUGE = "gauge"
    UNTYPED = "untyped"
    """A counter under a name of old, without `_total`."""


class Family(NamedTuple):
    name: str
    kind: Kind
    text: str
    samples: Iterable[Sample]
    """May be made while they are read. Without any there is no family."""


def gauge(name: str, text: str, value: float) -> Family:
    return Family(name, Kind.GAUGE, text, [(NO_LABELS, value)])


def gauges(name: str, text: str, samples: Iterable[Sample]) -> Family:
    return Family(name, Kind.GAUGE, text, samples)


def counter(name: str, text: str, value: float) -> Family:
    return Family(name, Kind.COUNTER, text, [(NO_LABELS, value)])


def counters(name: str, text: str, samples: Iterable[Sample]) -> Family:
    return Family(name, Kind.COUNTER, text, samples)
