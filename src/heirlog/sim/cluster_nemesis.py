"""Faults that hit every node at once, and starts that fail: the additional faults of the scenario `outages`.

    whole-power-cut   every node loses power at one moment (controllers at that moment or a little later). For each
                      disk, chance decides whether it keeps everything or a random part of what was not flushed. The
                      nodes boot in any order, within seconds or within a minute
    wrong-order       every node stops cleanly. Brokers are started first and give up, or are killed, or stopped again;
                      the controllers come last
    failing-start     one broker stops cleanly and is started again and again without success: cut off from the
                      controllers, on a full disk, killed half-way, or stopped before it is registered

Budget: such a fault begins only while no other fault uses a node, and it reserves all nodes that it touches. It ends on
its own, by starting all stopped nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Protocol

from heirlog.sim.nemesis import FaultTarget, Nemesis

WHOLE_POWER_CUT = "whole-power-cut"
KINDS = (WHOLE_POWER_CUT, "wrong-order", "failing-start")
STOP_LIMIT_MS = 20_000
RETURN_MS = 3000
"""How long after the final start the node stays reserved."""
BOOT_WITHIN_MS = (3000, 12_000, 60_000)


class DiskFaultTarget(FaultTarget, Protocol):
    """What these faults need in addition."""

    def fill_disk(self, name: str) -> None:
        """From now on nothing can be written."""

    def repair_disk(self, name: str) -> None: ...


class ClusterNemesis:
    """The kinds of this module, for one swarm."""

    def __init__(self, target: DiskFaultTarget, random: Random, swarm: Nemesis) -> None:
        self._kind = ""
        """Number of the newest fault; its timers have this name."""
        self._target = target
        self._random = random
        self._swarm = swarm
        self._busy = swarm.busy
        self.injected: Counter[str] = Counter()

    def inject(self, kind: str) -> None:
        if self._busy:
            return
        self.injected[f"fault.{kind}"] += 1
        self._kind = kind
        if kind == WHOLE_POWER_CUT:
            self._cut_all()
        elif kind == "wrong-order":
            self._stop_all()
        else:
            names = [name for name in self._target.broker_names if self._target.is_up(name)]
            if names:
                self._fail_starts(names[self._random.randrange(0, len(names))])

    def end(self) -> None:
        """Free the disks that were filled."""
        for name in self._target.broker_names:
            self._target.repair_disk(name)

    # every node loses power

    def _cut_all(self) -> None:
        brokers, controllers = self._shuffled(self._target.broker_names), self._target.controller_names
        self._hold([*brokers, *controllers])
        loses = self._random.randrange(0, 4)
        for name in brokers:
            self._target.kill(name, lose_unflushed=self._random.randrange(0, 4) < loses)
        # the controllers may last long enough to fence the brokers
        later_ms = self._random.randrange(0, (1, 4000)[self._random.randrange(0, 2)])
        self._later(later_ms, lambda: self._cut_and_boot(brokers, controllers))

    def _cut_and_boot(self, brokers: list[str], controllers: list[str]) -> None:
        for name in controllers:
            self._target.kill(name, lose_unflushed=True)
        within_ms = BOOT_WITHIN_MS[self._random.randrange(0, len(BOOT_WITHIN_MS))]
        for name in self._shuffled([*brokers, *controllers]):
            self._later(self._random.randrange(0, within_ms), self._boot(name))

    def _boot(self, name: str) -> Callable[[], None]:
        def boot() -> None:
            self._target.start(name)
            self._later(RETURN_MS, returned)

        def returned() -> None:
            """An earlier start may have been about to end, or this one has given up: no controller was there yet."""
            self._busy.pop(name, None)
            self._target.start(name)

        return boot

    # every node stops cleanly, and starts in the wrong order

    def _stop_all(self) -> None:
        brokers, controllers = self._shuffled(self._target.broker_names), list(self._target.controller_names)
        self._hold([*brokers, *controllers])
        at_ms = 0
        for name in brokers:
            self._later(at_ms, self._stop(name))
            at_ms += self._random.randrange(0, 1500)
        self._until_down(brokers, STOP_LIMIT_MS, lambda: self._stop_controllers(brokers, controllers))

    def _stop(self, name: str) -> Callable[[], None]:
        return lambda: self._target.stop(name)

    def _stop_controllers(self, brokers: list[str], controllers: list[str]) -> None:
        for name in controllers:
            self._target.stop(name)
        self._until_down(controllers, STOP_LIMIT_MS, lambda: self._start_without_controllers(brokers, controllers))

    def _start_without_controllers(self, brokers: list[str], controllers: list[str]) -> None:
        span_ms = self._random.randrange(2000, 12_000)
        for name in brokers:
            for _ in range(self._random.randrange(0, 4)):
                self._later(self._random.randrange(0, span_ms), self._attempt(name))
        self._later(span_ms, lambda: self._start_controllers_and_brokers(controllers, brokers))

    def _start_controllers_and_brokers(self, controllers: list[str], brokers: list[str]) -> None:
        for name in (*controllers, *brokers):
            self._later(self._random.randrange(0, 3000), self._boot(name))

    # starts that fail

    def _fail_starts(self, name: str) -> None:
        self._hold([name])
        self._target.stop(name)
        self._until_down([name], STOP_LIMIT_MS, lambda: self._attempts(name, self._random.randrange(1, 4)))

    def _attempts(self, name: str, left: int) -> None:
        if left == 0:
            self._boot(name)()
            return
        how = self._random.randrange(0, 3)
        if how == 0:
            self._target.say(f"partition {name} from the controllers")
            self._cut_off(name)
        elif how == 1:
            self._target.fill_disk(name)

        def ended() -> None:
            self._target.repair_disk(name)
            self._reconnect(name)
            self._until_down([name], STOP_LIMIT_MS, lambda: self._attempts(name, left - 1))

        self._attempt(name)()
        # without a disturbance, the start is ended within 5 ms, before it registers
        self._later(self._random.randrange(0, 5 if how == 2 else 4000), lambda: self._end_attempt(name, ended))

    def _end_attempt(self, name: str, then: Callable[[], None]) -> None:
        self._end_somehow(name)
        then()

    def _cut_off(self, name: str) -> None:
        for link in self._links_to_controllers(name):
            self._target.block(*link)

    def _reconnect(self, name: str) -> None:
        for link in self._links_to_controllers(name):
            self._target.heal(*link)

    def _links_to_controllers(self, name: str) -> list[tuple[str, str]]:
        return [
            link for controller in self._target.controller_names for link in ((name, controller), (controller, name))
        ]

    def _attempt(self, name: str) -> Callable[[], None]:
        """A start, which may be ended again soon."""

        def attempt() -> None:
            self._target.start(name)
            if not self._random.randrange(0, 3):
                self._later(self._random.randrange(0, (5, 50, 1500)[self._random.randrange(0, 3)]), end)

        def end() -> None:
            if name in self._busy:
                self._end_somehow(name)

        return attempt

    def _end_somehow(self, name: str) -> None:
        match self._random.randrange(0, 3):
            case 0:
                self._target.kill(name)
            case 1:
                self._target.kill(name, lose_unflushed=True)
            case _:
                self._target.stop(name)

    # what all of them share

    def _hold(self, names: list[str]) -> None:
        for name in names:
            self._busy[name] = name

    def _shuffled(self, names: list[str]) -> list[str]:
        shuffled = list(names)
        self._random.shuffle(shuffled)
        return shuffled

    def _later(self, delay_ms: int, fn: Callable[[], None]) -> None:
        self._target.after(delay_ms, self._kind, lambda: None if self._swarm.is_over else fn())

    def _until_down(self, names: list[str], limit_ms: int, then: Callable[[], None]) -> None:
        up = [name for name in names if self._target.is_up(name)]
        if up and limit_ms > 0:
            self._later(100, lambda: self._until_down(names, limit_ms - 100, then))
            return
        for name in up:
            self._target.kill(name)
        then()
