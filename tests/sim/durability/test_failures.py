"""Failures of brokers that are independent of each other, and of what is compared."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from heirlog.sim.durability.failures import DOWN_MEAN_MS, WEIGHTS, drawn

HOUR_MS = 3_600_000


def test_a_broker_returns_before_it_fails_again() -> None:
    failures = drawn(Random(1), 5000, HOUR_MS)
    assert failures[0].begins_ms > 0
    assert failures[-1].begins_ms < HOUR_MS
    assert all(one.begins_ms < one.ends_ms < other.begins_ms for one, other in pairwise(failures))


def test_times_and_kinds_are_drawn_as_often_as_they_should_be() -> None:
    failures = drawn(Random(2), 5000, 10 * HOUR_MS)
    down_ms = sum(one.ends_ms - one.begins_ms for one in failures)
    up_ms = failures[-1].ends_ms - down_ms
    assert abs(down_ms / len(failures) / DOWN_MEAN_MS - 1) < 0.1
    assert abs(up_ms / len(failures) / 5000 - 1) < 0.1
    kinds = Counter(one.kind for one in failures)
    for kind, weight in WEIGHTS.items():
        assert abs(kinds[kind] / len(failures) * sum(WEIGHTS.values()) - weight) < 0.3
