"""Which faults a chaos drill plays, and when: everything is drawn from the seed before the drill begins.

A fault names its victims by numbers: which nodes those are is decided when it starts, among the nodes that can have it
then ("the active controller", "a broker that runs"). So the same seed plays the same faults at the same times, and what
comes of them depends on the machine.

Each seed has a mix of its own: a kind may be left out, or come three times as often. The first long fault is always
`last-replica-standing`, because it shows whether eligible leader replicas work: one after the other, all replicas of a
partition stop, and the last one loses power.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

BROKER_FAULTS = {
    "kill": (0.5, 6.0),
    "power-cut": (0.5, 6.0),
    "pause": (0.5, 7.0),
    "stop": (0.5, 4.0),
    "full-disk": (2.0, 6.0),
    "slow-disk": (3.0, 8.0),
}
"""Of one broker; how long it lasts, in seconds."""
CONTROLLER_FAULTS = {
    "controller-kill": (0.5, 4.0),
    "controller-power-cut": (0.5, 4.0),
    "controller-pause": (0.5, 5.0),
    "controller-full-disk": (1.0, 4.0),
    "controller-slow-disk": (2.0, 6.0),
}
"""Of one controller: every second time of the active one."""
LINK_FAULTS = {
    "cut": (1.0, 6.0),
    "hold": (1.0, 7.0),
    "hold-one-way": (1.0, 7.0),
    "delay": (2.0, 8.0),
    "half-close": (1.0, 4.0),
    "reset": (0.0, 0.1),
    "clients-cut": (1.0, 5.0),
}
"""Between a node and another, or a node and all others."""
LAST_REPLICA_STANDING = "last-replica-standing"
LONG_FAULTS = (LAST_REPLICA_STANDING, "two-power-cuts", "blackout", "rolling", "majority-kill")
"""Played while no other fault is: they take down several nodes, or wait for states."""
WEIGHTS_MAX = 3
LONG_WEIGHT = 0.4
FIRST_S = 3.0
GAP_S = (1.0, 4.5)
"""From one fault to the next."""
CHANGES = ("reassign", "min-isr", "flush", "recreate", "elect-preferred", "elect-unclean", "cancel-reassignment")
HARMLESS_CHANGES = ("recreate", "elect-preferred")
"""Before the first last-replica-standing: with another min ISR, or when every record is flushed, it would show nothing.
"""
CHANGE_GAP_S = (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """pick, other: which nodes, modulo the number of those that can have it. seed: of everything else in it."""

    at_s: float
    kind: str
    pick: int
    other: int
    lasts_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What an operator does. seed: of everything in it."""

    at_s: float
    kind: str
    seed: int


def durations() -> Mapping[str, tuple[float, float]]:
    return {**BROKER_FAULTS, **CONTROLLER_FAULTS, **LINK_FAULTS}


def faults(seed: int, duration_s: float) -> list[PlannedFault]:
    """In the order of their times; the last ones may still last when the drill ends."""
    random = Random(f"faults {seed}")
    kinds = sorted(durations())
    weights = {kind: float(random.randint(0, WEIGHTS_MAX)) for kind in kinds}
    # a seed without any of them would test nothing
    weights[kinds[random.randrange(len(kinds))]] = WEIGHTS_MAX
    weights |= {kind: random.randint(0, WEIGHTS_MAX) * LONG_WEIGHT for kind in LONG_FAULTS}
    return list(_drawn(random, weights, duration_s))


def _drawn(random: Random, weights: Mapping[str, float], duration_s: float) -> Iterator[PlannedFault]:
    at_s, number = FIRST_S, 0
    while at_s < duration_s:
        kind = random.choices(list(weights), list(weights.values()))[0]
        if number == 1:
            kind = LAST_REPLICA_STANDING
        low_s, high_s = durations().get(kind, (0.0, 0.0))
        yield PlannedFault(
            round(at_s, 2),
            kind,
            random.getrandbits(16),
            random.getrandbits(16),
            round(random.uniform(low_s, high_s), 2),
            random.getrandbits(32),
        )
        number += 1
        at_s += random.uniform(*GAP_S)


def changes(seed: int, duration_s: float) -> list[PlannedChange]:
    """What operators do meanwhile."""
    random = Random(f"changes {seed}")
    found = []
    at_s = random.uniform(*CHANGE_GAP_S)
    while at_s < duration_s:
        kinds = CHANGES if at_s > FIRST_S + GAP_S[1] else HARMLESS_CHANGES
        found.append(PlannedChange(round(at_s, 2), random.choice(kinds), random.getrandbits(32)))
        at_s += random.uniform(*CHANGE_GAP_S)
    return found
