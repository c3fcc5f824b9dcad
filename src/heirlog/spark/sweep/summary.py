"""The runs of each cell together.

A run that was cut off has no figures of its end, and one that broke a check other than the expected loss is an error:
such runs are counted and named, and left out of everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from heirlog.sim.durability.cell import Cell, Policy, cell_of
from heirlog.spark.sweep.statistics import Estimate, mean, probability, skewed_mean

CUT_OFF = "cut-off"
"""In place of a check: the run ended early, and no check says why."""


@dataclass(frozen=True, slots=True)
class LosingRun:
    """A run that lost records."""

    seed: int
    lost: int
    reported: int
    replay: str


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """A run that broke a check, or was cut off."""

    check: str
    """Or `CUT_OFF`."""
    sentence: str
    replay: str


@dataclass(frozen=True, slots=True)
class CellSummary:
    cell: Cell
    runs: int
    """Without broken ones."""
    loss: Estimate
    """Probability that a run loses acknowledged records."""
    lost: Estimate
    """Records per run."""
    unavailable: Estimate
    """Share of the time."""
    acknowledged: int
    lost_in_all: int
    reported_in_all: int
    elections: float
    """Per run."""
    lossy_elections: float
    failures: float
    losses: tuple[LosingRun, ...]
    broken: tuple[BrokenRun, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "replication_factor": self.cell.replication_factor,
            "min_isr": self.cell.min_isr,
            "strategy": self.cell.policy.value,
            "mtbf_s": self.cell.mtbf_s,
            "scenario": self.cell.scenario,
            "runs": self.runs,
            "probability_of_loss": self.loss._asdict(),
            "lost_per_run": self.lost._asdict(),
            "unavailable": self.unavailable._asdict(),
            "acknowledged": self.acknowledged,
            "lost": self.lost_in_all,
            "lost_reported": self.reported_in_all,
            "elections_per_run": self.elections,
            "lossy_elections_per_run": self.lossy_elections,
            "losses": [loss.replay for loss in self.losses],
            "broken": [{"check": one.check, "sentence": one.sentence, "replay": one.replay} for one in self.broken],
        }


@dataclass(frozen=True, slots=True)
class Sweep:
    """Everything that the page says."""

    cells: tuple[CellSummary, ...]
    """By replication factor, min ISR, failure rate (the lowest first), strategy."""
    code: str
    cpu_s: float
    events: int

    @property
    def runs(self) -> int:
        return sum(each.runs + len(each.broken) for each in self.cells)

    def groups(self) -> Iterator[tuple[tuple[int, int], list[CellSummary]]]:
        """Cells with the same (replication factor, min ISR)."""
        keys = sorted({(each.cell.replication_factor, each.cell.min_isr) for each in self.cells})
        for key in keys:
            yield key, [each for each in self.cells if (each.cell.replication_factor, each.cell.min_isr) == key]


def summarise(runs: pa.Table, code: str) -> Sweep:
    """runs: as `SweepFolder.table` gives them."""
    scenarios = pc.unique(runs.column("scenario")).to_pylist()
    cells = [_summary(cell_of(name), runs.filter(pc.equal(runs.column("scenario"), name))) for name in scenarios]
    order = list(Policy)
    cells.sort(
        key=lambda each: (
            each.cell.replication_factor,
            each.cell.min_isr,
            -each.cell.mtbf_s,
            order.index(each.cell.policy),
        )
    )
    return Sweep(tuple(cells), code, float(_sum(runs, "cpu_s")), int(_sum(runs, "events")))


def _summary(cell: Cell, rows: pa.Table) -> CellSummary:
    is_broken = pc.or_(pc.not_equal(rows.column("check"), ""), pc.invert(rows.column("complete")))
    kept = rows.filter(pc.invert(is_broken)).sort_by("seed")
    runs = kept.num_rows
    lost = kept.column("lost")
    shares = pc.divide(pc.cast(kept.column("unavailable_ms"), pa.float64()), kept.column("partition_ms"))
    losing = kept.filter(pc.greater(lost, 0))
    return CellSummary(
        cell=cell,
        runs=runs,
        loss=probability(losing.num_rows, runs),
        lost=skewed_mean(lost.to_pylist()),
        unavailable=mean(shares.to_pylist()),
        acknowledged=int(_sum(kept, "acknowledged")),
        lost_in_all=int(_sum(kept, "lost")),
        reported_in_all=int(_sum(kept, "lost_reported")),
        elections=_sum(kept, "elections") / max(1, runs),
        lossy_elections=_sum(kept, "lossy_elections") / max(1, runs),
        failures=_sum(kept, "failures") / max(1, runs),
        losses=tuple(
            LosingRun(row["seed"], row["lost"], row["lost_reported"], row["replay"])
            for row in losing.select(["seed", "lost", "lost_reported", "replay"]).to_pylist()
        ),
        broken=tuple(
            BrokenRun(row["check"] or CUT_OFF, row["sentence"], row["replay"])
            for row in rows.filter(is_broken).sort_by("seed").select(["check", "sentence", "replay"]).to_pylist()
        ),
    )


def _sum(rows: pa.Table, column: str) -> float:
    return float(pc.sum(rows.column(column)).as_py() or 0)
