"""Faults of the controllers of a quorum: the additional faults of the scenario `controllers`.

    voter-kill, voter-power-cut, voter-clean-stop    the controller returns after some seconds
    voter-pause                                      it hangs: connections stay open, and it answers nothing
    voter-partition, voter-one-way                   it is cut off from all nodes, or hears them and is not heard
    voter-slow                                       its messages take up to 0.3 s
    voter-slow-disk                                  each of its flushes takes up to 0.5 s
    voter-broken-disk                                its disk is full, or answers EIO: the controller ends, and returns
                                                     when the disk is repaired

The active controller is hit half of the time, any of them otherwise. Several may have a fault at once, also a majority:
then nothing changes until some of them return.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from heirlog.sim.cluster import SimCluster
from heirlog.sim.disk import BREAKAGES, FLUSH_US
from heirlog.sim.nemesis import Nemesis

KINDS = (
    "voter-kill",
    "voter-power-cut",
    "voter-clean-stop",
    "voter-pause",
    "voter-partition",
    "voter-one-way",
    "voter-slow",
    "voter-slow-disk",
    "voter-broken-disk",
)
SLOW_FLUSH_US = (20_000, 500_000)


class ControllerNemesis:
    """The kinds of this module, for one swarm."""

    def __init__(self, cluster: SimCluster, random: Random, swarm: Nemesis) -> None:
        self._cluster = cluster
        self._random = random
        self._swarm = swarm
        self._busy = swarm.busy
        self._slow_disks: set[str] = set()
        self._broken_disks: set[str] = set()

    def end(self) -> None:
        """The disks work normally again."""
        for name in sorted(self._slow_disks):
            self._disk_is_fast(name)
        for name in sorted(self._broken_disks):
            self._repair(name)

    def inject(self, kind: str) -> None:
        name = self._victim()
        if name is None:
            return
        if kind in ("voter-kill", "voter-power-cut"):
            self._cluster.kill(name, lose_unflushed=kind == "voter-power-cut")
            self._end_later(name, 50, 5000, lambda: self._cluster.start(name))
        elif kind == "voter-clean-stop":
            self._cluster.stop(name)
            self._end_later(name, 200, 6000, lambda: self._return(name))
        elif kind == "voter-pause":
            self._cluster.pause(name)
            self._end_later(name, 100, 6000, lambda: self._cluster.resume(name))
        elif kind == "voter-slow":
            self._cluster.say(f"slow {name}")
            self._cluster.slow(name, self._random.randrange(2000, 300_000))
            self._end_later(name, 500, 5000, lambda: self._cluster.slow(name, 0))
        elif kind == "voter-slow-disk":
            self._cluster.say(f"slow disk of {name}")
            self._cluster.slow_disk(name, SLOW_FLUSH_US)
            self._slow_disks.add(name)
            self._end_later(name, 500, 6000, lambda: self._disk_is_fast(name))
        elif kind == "voter-broken-disk":
            how = BREAKAGES[self._random.randrange(0, len(BREAKAGES))]
            self._cluster.say(f"break {name} {how}")
            self._cluster.break_disk(name, "/data", how)
            self._broken_disks.add(name)
            self._end_later(name, 500, 6000, lambda: self._repair(name))
        else:
            self._cut_off(name, one_way=kind == "voter-one-way")

    def _victim(self) -> str | None:
        free = [name for name in self._cluster.controller_names if name not in self._busy and self._cluster.is_up(name)]
        if not free:
            return None
        active = self._cluster.controller.name
        if active in free and self._random.randrange(0, 2):
            return active
        return free[self._random.randrange(0, len(free))]

    def _return(self, name: str) -> None:
        """A clean stop may take longer than the fault."""
        self._cluster.kill(name)
        self._cluster.start(name)

    def _disk_is_fast(self, name: str) -> None:
        self._slow_disks.discard(name)
        self._cluster.slow_disk(name, FLUSH_US)

    def _repair(self, name: str) -> None:
        """One that still runs has not noticed: it must not flush again what it may have failed to flush."""
        self._broken_disks.discard(name)
        self._cluster.kill(name, lose_unflushed=bool(self._random.randrange(0, 2)))
        self._cluster.repair_disk(name)
        self._cluster.start(name)

    def _cut_off(self, name: str, *, one_way: bool) -> None:
        others = [machine.name for machine in self._cluster.all_machines if machine.name != name]
        links = [(name, other) for other in others]
        if not one_way:
            links += [(other, name) for other in others]
        self._cluster.say(f"cut off {name}{' one way' if one_way else ''}")
        for source, target in links:
            self._cluster.block(source, target)

        def end() -> None:
            for source, target in links:
                self._cluster.heal(source, target)

        self._end_later(name, 200, 8000, end)

    def _end_later(self, name: str, low_ms: int, high_ms: int, end: Callable[[], None]) -> None:
        self._busy[name] = name

        def over() -> None:
            self._busy.pop(name, None)
            if not self._swarm.is_over:
                end()

        self._cluster.after(self._random.randrange(low_ms, high_ms), "voter fault", over)
