"""Rows of a sweep without its runs."""

from __future__ import annotations

from dataclasses import replace

from heirlog.sim.durability.cell import Cell, Policy
from heirlog.sim.durability.measure import Measurement

CELL = Cell(3, 2, Policy.BALANCED, 10)


def row(cell: Cell, seed: int, **values: object) -> Measurement:
    plain = Measurement(
        scenario=cell.scenario,
        seed=seed,
        acknowledged=1000,
        lost=0,
        lost_reported=0,
        unavailable_ms=6000,
        unavailable_max_ms=4000,
        partition_ms=60_000,
        failures=4,
        elections=3,
        lossy_elections=0,
        events=7000,
        cpu_s=0.4,
        complete=True,
        tolerated="",
        check="",
        sentence="",
        hash=f"{seed:032x}",
        replay=f"heirlog sim replay {seed} --scenario {cell.scenario}",
    )
    return replace(plain, **values)  # type: ignore[arg-type]
