"""The faults of a run: each seed draws its own mix, and the mix draws the moments.

A mix is a set of kinds of faults, each with a weight. One seed has many pauses and no kill, another one kills nodes and
cuts power all the time. With too many faults at once nothing would run that could fail. So there is a *budget*: at most
`down_max` brokers are down or cut off at the same time, and every fault ends on its own.

    quiet --every few hundred ms--> draw a kind, draw a node, start the fault, and schedule its end
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol


class FaultTarget(Protocol):
    """What faults need from a cluster."""

    @property
    def broker_names(self) -> list[str]: ...

    @property
    def controller_names(self) -> list[str]:
        """Without those that are brokers too."""

    def is_up(self, name: str) -> bool: ...

    def kill(self, name: str, *, lose_unflushed: bool = False) -> None: ...

    def stop(self, name: str) -> None:
        """Ask for a clean stop."""

    def start(self, name: str) -> None: ...

    def pause(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...

    def block(self, source: str, target: str) -> None: ...

    def heal(self, source: str, target: str) -> None: ...

    def reset_between(self, one: str, other: str) -> None: ...

    def slow(self, name: str, extra_us: int) -> None: ...

    def drift(self, name: str, ppm: int) -> None: ...

    def set_wall_clock(self, name: str, offset_ms: int) -> None: ...

    def after(self, delay_ms: int, label: str, fn: Callable[[], None]) -> None:
        """On the run's own time."""

    def say(self, what: str) -> None:
        """Into the list of faults of the report."""


@dataclass(frozen=True, slots=True)
class FaultMix:
    """How often (mean milliseconds between two faults), and which kinds with which weights."""

    every_ms: int
    down_max: int
    weights: Mapping[str, int]
    loss: float
    reset: float


KINDS = (
    "pause",
    "kill",
    "power-cut",
    "clean-stop",
    "partition",
    "one-way",
    "reset",
    "slow",
    "rolling",
    "controller-kill",
    "controller-power-cut",
    "ladder",
    "drift",
    "wall-clock",
)
DRIFTS_PPM = (-50_000, -5_000, -100, 100, 5_000, 50_000)
"""A quartz is wrong by a hundred at most; a virtual machine that gets too little CPU time is wrong by much more."""
WALL_STEP_MS = 600_000


def draw_mix(random: Random, besides: Sequence[str] = ()) -> FaultMix:
    """A seed's own mix. besides: kinds that a swarm gets from its `others`."""
    weights = {kind: (0, 0, 1, 2, 5)[random.randrange(0, 5)] for kind in (*KINDS, *besides)}
    if not any(weights.values()):
        weights["kill"] = 1
    return FaultMix(
        every_ms=random.randrange(400, 3000),
        down_max=random.randrange(1, 4),
        weights=weights,
        loss=(0.0, 0.0, 0.001, 0.005)[random.randrange(0, 4)],
        reset=(0.0, 0.0, 0.001, 0.003)[random.randrange(0, 4)],
    )


class Nemesis:
    """Draws faults until `stop`; `heal_all` ends every fault that is still active."""

    def __init__(self, target: FaultTarget, mix: FaultMix, random: Random) -> None:
        self._target = target
        self._mix = mix
        self._random = random
        self._stopped = False
        self.busy: dict[str, str] = {}
        """The nodes that a fault has reserved. A node has at most one fault at a time."""
        self._weighted_kinds = [kind for kind, weight in mix.weights.items() for _ in range(weight)]
        self.others: dict[str, Callable[[str], None]] = {}
        """Kinds of faults that other modules define, with the functions that start them."""

    @property
    def is_over(self) -> bool:
        return self._stopped

    def start(self) -> None:
        self._again()

    def stop(self) -> None:
        """Start no new faults, and end the active ones."""
        self._stopped = True
        for name in [*self._target.broker_names, *self._target.controller_names]:
            self._target.resume(name)
            self._target.slow(name, 0)
            self._target.drift(name, 0)
            for other in [*self._target.broker_names, *self._target.controller_names]:
                if other != name:
                    self._target.heal(name, other)

    def _again(self) -> None:
        wait_ms = self._random.randrange(self._mix.every_ms // 2, self._mix.every_ms * 3 // 2)
        self._target.after(wait_ms, "fault", self._inject_fault)

    def _inject_fault(self) -> None:
        if self._stopped:
            return
        kind = self._weighted_kinds[self._random.randrange(0, len(self._weighted_kinds))]
        if kind in self.others:
            self.others[kind](kind)
        elif kind.startswith("controller"):
            self._fault_controller(kind)
        elif kind in ("drift", "wall-clock"):
            self._fault_clock(kind)
        else:
            self._fault_broker(kind)
        self._again()

    def _fault_controller(self, kind: str) -> None:
        names = [name for name in self._target.controller_names if name not in self.busy and self._target.is_up(name)]
        if names:
            name = names[self._random.randrange(0, len(names))]
            self._take_down(name, power_cut=kind == "controller-power-cut", low_ms=100, high_ms=1500)

    def _fault_broker(self, kind: str) -> None:
        if kind == "rolling":
            if not self.busy:
                self._roll(list(self._target.broker_names))
            return
        if kind == "ladder":
            if not self.busy:
                self._stop_in_sequence()
            return
        free = [name for name in self._target.broker_names if name not in self.busy and self._target.is_up(name)]
        if not free or len(self.busy) >= self._mix.down_max:
            return
        name = free[self._random.randrange(0, len(free))]
        if kind in ("kill", "power-cut"):
            self._take_down(name, power_cut=kind == "power-cut", low_ms=50, high_ms=5000)
        elif kind == "clean-stop":
            self._stop_and_start(name, self._random.randrange(200, 6000), lambda: None)
        elif kind == "pause":
            self._target.pause(name)
            self._until_end(name, 100, 5000, lambda: self._target.resume(name))
        elif kind == "slow":
            self._target.say(f"slow {name}")
            self._target.slow(name, self._random.randrange(2000, 300_000))
            self._until_end(name, 500, 4000, lambda: self._target.slow(name, 0))
        elif kind == "reset":
            other = self._other_than(name)
            self._target.say(f"reset {name} {other}")
            self._target.reset_between(name, other)
        else:
            self._partition(name, one_way=kind == "one-way")

    def _fault_clock(self, kind: str) -> None:
        """Of any node, a controller too; it lasts long, while other nodes have other faults."""
        names = [*self._target.broker_names, *self._target.controller_names]
        name = names[self._random.randrange(0, len(names))]
        if kind == "drift":
            ppm = DRIFTS_PPM[self._random.randrange(0, len(DRIFTS_PPM))]
            self._target.say(f"drift {name} {ppm} ppm")
            self._target.drift(name, ppm)
        else:
            offset_ms = self._random.randrange(-WALL_STEP_MS, WALL_STEP_MS)
            self._target.say(f"wall clock of {name} {offset_ms} ms off")
            self._target.set_wall_clock(name, offset_ms)

    def _other_than(self, name: str) -> str:
        others = [n for n in [*self._target.broker_names, *self._target.controller_names] if n != name]
        return others[self._random.randrange(0, len(others))]

    def _partition(self, name: str, *, one_way: bool) -> None:
        """From one node, or from all."""
        everyone = [n for n in [*self._target.broker_names, *self._target.controller_names] if n != name]
        others = [self._other_than(name)] if self._random.randrange(0, 2) else everyone
        outward = self._random.randrange(0, 2)
        links = []
        for other in others:
            if not one_way or outward:
                links.append((name, other))
            if not one_way or not outward:
                links.append((other, name))
        self._target.say(f"partition {' '.join(f'{source}>{target}' for source, target in links)}")
        for source, target in links:
            self._target.block(source, target)

        def end() -> None:
            for source, target in links:
                self._target.heal(source, target)

        self._until_end(name, 200, 5000, end)

    def _take_down(self, name: str, *, power_cut: bool, low_ms: int, high_ms: int) -> None:
        self._target.kill(name, lose_unflushed=power_cut)
        self._until_end(name, low_ms, high_ms, lambda: self._target.start(name))

    def _until_end(self, name: str, low_ms: int, high_ms: int, end: Callable[[], None]) -> None:
        self.busy[name] = name

        def over() -> None:
            self.busy.pop(name, None)
            if not self._stopped:
                end()

        self._target.after(self._random.randrange(low_ms, high_ms), f"end of fault {name}", over)

    def _stop_and_start(self, name: str, down_ms: int, then: Callable[[], None]) -> None:
        self.busy[name] = name

        def restart() -> None:
            self.busy.pop(name, None)
            if not self._stopped:
                self._target.start(name)
                then()

        self._target.stop(name)
        self._wait_until_down(name, 200, lambda: self._target.after(down_ms, f"restart {name}", restart))

    def _wait_until_down(self, name: str, tries: int, then: Callable[[], None]) -> None:
        if self._stopped:
            return  # healing may have started it again
        if not self._target.is_up(name):
            then()
        elif tries == 0:
            self._target.kill(name)
            then()
        else:
            self._target.after(100, f"stopping {name}", lambda: self._wait_until_down(name, tries - 1, then))

    def _roll(self, names: list[str]) -> None:
        """One after the other, clean."""
        if names and not self._stopped:
            down_ms = self._random.randrange(100, 1500)
            self._stop_and_start(
                names[0], down_ms, lambda: self._target.after(800, "roll", lambda: self._roll(names[1:]))
            )

    def _stop_in_sequence(self) -> None:
        """KIP-966's motivation with random choices: brokers go down one after the other (cleanly, killed or without
        power), and come back.
        """
        names = list(self._target.broker_names)
        for index in range(len(names) - 1, 0, -1):
            other = self._random.randrange(0, index + 1)
            names[index], names[other] = names[other], names[index]
        order = list(names)
        if self._random.randrange(0, 2):
            order.append(order.pop(0))
        at_ms = 0
        for name in names:
            self.busy[name] = name
            self._target.after(at_ms, "ladder down", self._stop_next(name))
            at_ms += self._random.randrange(200, 2500)
        at_ms += 1500
        for name in order:
            self._target.after(at_ms, "ladder up", self._start_next(name))
            at_ms += self._random.randrange(100, 2500)

    def _stop_next(self, name: str) -> Callable[[], None]:
        way = self._random.randrange(0, 4)

        def down() -> None:
            if self._stopped or not self._target.is_up(name):
                return
            if way < 2:
                self._target.stop(name)
            else:
                self._target.kill(name, lose_unflushed=way == 3)

        return down

    def _start_next(self, name: str) -> Callable[[], None]:
        def up() -> None:
            if self._stopped:
                return
            if self._target.is_up(name):  # still stopping
                self._target.kill(name)
            self.busy.pop(name, None)
            self._target.start(name)

        return up
