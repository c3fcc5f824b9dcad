"""Which runs a sweep consists of."""

from __future__ import annotations

import pytest

from heirlog.sim.durability.cell import Policy
from heirlog.spark.sweep.grid import Grid, SweepError


def test_every_combination_is_a_cell_and_has_every_seed() -> None:
    grid = Grid((3, 5), (1, 2), mtbfs_s=(20, 10, 5))
    cells = grid.cells()
    assert len(cells) == len(set(cells)) == 2 * 2 * 3 * len(Policy)
    runs = list(grid.runs(4))
    assert len(runs) == 4 * len(cells)
    assert {cell for cell, seed in runs if seed == 4} == set(cells)
    assert [seed for _, seed in runs] == sorted(seed for _, seed in runs), "a stopped sweep has as many runs of each"


def test_min_isr_above_the_replication_factor_is_left_out() -> None:
    assert {(cell.replication_factor, cell.min_isr) for cell in Grid((1, 3), (1, 2)).cells()} == {
        (1, 1),
        (3, 1),
        (3, 2),
    }
    with pytest.raises(SweepError, match="every min ISR exceeds every replication factor"):
        Grid((2,), (3,))


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        (((9,), (1,)), "a replication factor"),
        (((3,), (0,)), "min ISR"),
        (((3,), (1,), (Policy.NONE,), (0,)), "failures"),
    ],
)
def test_values_out_of_range_are_refused(grid: tuple[tuple[int, ...], ...], sentence: str) -> None:
    with pytest.raises(SweepError, match=sentence):
        Grid(*grid)  # type: ignore[arg-type]
