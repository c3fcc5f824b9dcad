"""Brokers that fail and return, each at its own times: the faults of the scenario `durability`.

    runs --a time drawn from the mean time between failures--> fails --a time drawn from `DOWN_MEAN_MS`--> runs

Both times have a geometric distribution, the exponential one in steps of `STEP_MS`. Each broker draws its failures from
a stream of its own and before the run begins. So in two cells of one seed with the same rate, the same brokers fail in
the same way at the same moments; only what the cluster makes of it differs.

    stop       a clean stop, such as that of an upgrade
    kill       the process ends at once; what it has written stays in the page cache
    power-cut  the machine loses what was not flushed
    cut-off    the broker runs, and neither nodes nor clients reach it

The controllers do not fail, and no fault hits several brokers at once: this compares what the rules for electing
leaders make of failures that are independent of each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from heirlog.sim.cluster import SimCluster

STEP_MS = 100
DOWN_MEAN_MS = 4000
WEIGHTS = {"stop": 4, "kill": 2, "power-cut": 3, "cut-off": 1}


@dataclass(frozen=True, slots=True)
class Downtime:
    """Times in virtual milliseconds after the faults begin."""

    kind: str
    begins_ms: int
    ends_ms: int


def drawn(random: Random, mtbf_ms: int, until_ms: int) -> list[Downtime]:
    """The failures of one broker that begin before `until_ms`; one ends before the next begins."""
    kinds = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]
    found: list[Downtime] = []
    ended_ms = 0
    while True:
        begins_ms = ended_ms + _time_ms(random, mtbf_ms)
        kind = kinds[random.randrange(0, len(kinds))]
        ended_ms = begins_ms + _time_ms(random, DOWN_MEAN_MS)
        if begins_ms >= until_ms:
            return found
        found.append(Downtime(kind, begins_ms, ended_ms))


def _time_ms(random: Random, mean_ms: int) -> int:
    """At least one step."""
    steps = 1
    while random.randrange(0, mean_ms // STEP_MS):
        steps += 1
    return steps * STEP_MS


class Failures:
    """The failures of every broker, from now on."""

    def __init__(self, cluster: SimCluster, mtbf_ms: int, until_ms: int) -> None:
        self._cluster = cluster
        self._is_over = False
        self.count = 0
        self.cut_off: dict[str, None] = {}
        """Brokers that cannot be reached now."""
        for name in cluster.broker_names:
            for failure in drawn(cluster.world.stream(f"failures {name}"), mtbf_ms, until_ms):
                self._plan(name, failure)

    def end(self) -> None:
        """Every broker runs and is connected."""
        self._is_over = True
        for name in self._cluster.broker_names:
            self._return(name)

    def _plan(self, name: str, failure: Downtime) -> None:
        def begin() -> None:
            if not self._is_over:
                self.count += 1
                self._begin(name, failure.kind)

        def end() -> None:
            if not self._is_over:
                self._return(name)

        self._cluster.after(failure.begins_ms, f"failure of {name}", begin)
        self._cluster.after(failure.ends_ms, f"return of {name}", end)

    def _begin(self, name: str, kind: str) -> None:
        if kind == "stop":
            self._cluster.stop(name)
        elif kind == "cut-off":
            self._cluster.say(f"cut off {name}")
            self.cut_off[name] = None
            for other in self._others(name):
                self._cluster.block(name, other)
                self._cluster.block(other, name)
        else:
            self._cluster.kill(name, lose_unflushed=kind == "power-cut")

    def _return(self, name: str) -> None:
        self.cut_off.pop(name, None)
        for other in self._others(name):
            self._cluster.heal(name, other)
            self._cluster.heal(other, name)
        if self._cluster.is_up(name) and self._cluster.machine(name).stopping:
            # a supervisor does not wait for ever for a stop
            self._cluster.kill(name)
        self._cluster.start(name)

    def _others(self, name: str) -> list[str]:
        return [other for other in self._cluster.world.hosts if other != name]
