"""Numbers for the faults of a run, so that some of them can be left out.

The numbers follow the order in which faults happen: 0, 1, 2, ... A fault that is left out keeps its number, and what
draws the faults does not notice. So most of the others happen as before, and a run that fails can be made smaller
(`heirlog.sim.shrink`).
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from heirlog.sim.world import World


class NumberedFault(NamedTuple):
    number: int
    time_us: int
    what: str

    def __str__(self) -> str:
        return f"{self.time_us / 1e6:9.3f}  {self.number:4}  {self.what}"


class FaultNumbers:
    def __init__(self, world: World, left_out: Set[int]) -> None:
        self._world = world
        self._left_out = left_out
        self.happened: list[NumberedFault] = []
        self._next = 0
        self._newest: tuple[int, str] | None = None
        """Moment and kind of the newest fault."""

    def happens(self, kind: str, where: str) -> bool:
        """Whether this fault happens. Those of one kind at one moment have one number: a partition cuts many links."""
        moment = (self._world.now_us, kind)
        if kind == "block" and moment == self._newest:
            number = self._next - 1
        else:
            number, self._next, self._newest = self._next, self._next + 1, moment
        if number in self._left_out:
            return False
        if self.happened and self.happened[-1].number == number:
            self.happened[-1] = self.happened[-1]._replace(what=f"{self.happened[-1].what} {where}")
        else:
            self.happened.append(NumberedFault(number, self._world.now_us, f"{kind} {where}"))
        return True


def as_ranges(numbers: Set[int]) -> str:
    """1, 2, 3 and 7 as `1-3,7`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def of_ranges(text: str) -> frozenset[int]:
    """The reverse of `as_ranges`. Raises ValueError."""
    numbers: set[int] = set()
    for part in text.split(","):
        low, separator, high = part.partition("-")
        numbers.update(range(int(low), int(high if separator else low) + 1))
    return frozenset(numbers)
