"""Which runs a sweep consists of: every combination of its parameters, with the same seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from heirlog.sim.durability.cell import Cell, Policy


class SweepError(Exception):
    """A sweep that cannot run, or a folder that is not its own. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Combinations in which min ISR exceeds the replication factor are left out. Raises SweepError if none is left, or
    if a value is out of its range.
    """

    replication_factors: Sequence[int] = (3,)
    min_isrs: Sequence[int] = (1, 2)
    policies: Sequence[Policy] = tuple(Policy)
    mtbfs_s: Sequence[int] = (10, 5)

    def __post_init__(self) -> None:
        if not self.cells():
            raise SweepError("every min ISR exceeds every replication factor: there is nothing to run")

    def cells(self) -> list[Cell]:
        try:
            return [
                Cell(factor, min_isr, policy, mtbf_s)
                for factor, min_isr, mtbf_s, policy in product(
                    self.replication_factors, self.min_isrs, self.mtbfs_s, self.policies
                )
                if min_isr <= factor
            ]
        except ValueError as error:
            raise SweepError(str(error)) from error

    def runs(self, seeds: int) -> Iterator[tuple[Cell, int]]:
        """Seed by seed, so that a sweep that is stopped has as many runs of each cell."""
        cells = self.cells()
        return ((cell, seed) for seed in range(1, seeds + 1) for cell in cells)

    def as_json(self) -> dict[str, Any]:
        return {
            "replication_factor": list(self.replication_factors),
            "min_isr": list(self.min_isrs),
            "strategy": [policy.value for policy in self.policies],
            "mtbf_s": list(self.mtbfs_s),
        }

    def difference(self, before: Mapping[str, Any]) -> str:
        """What `before`, the `as_json` of a grid, has other values of; empty if nothing."""
        now = self.as_json()
        return "; ".join(
            f"{name} was {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]
        )
