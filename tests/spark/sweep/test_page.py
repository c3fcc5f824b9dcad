"""What a page says, and that it needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from spark.sweep.rows import CELL, row

from heirlog.sim.durability.cell import Cell, Policy
from heirlog.sim.durability.measure import Measurement
from heirlog.spark.sweep.folder import opened
from heirlog.spark.sweep.grid import Grid
from heirlog.spark.sweep.page import LISTED_MAX, page
from heirlog.spark.sweep.plots import plot, standalone
from heirlog.spark.sweep.summary import CUT_OFF, Sweep, summarise

OFF = Cell(3, 2, Policy.ELR_OFF, 10)


def summary_of(runs: list[Measurement], tmp_path: Path) -> Sweep:
    with opened(tmp_path / "out", Grid(), "c0de") as folder:
        folder.add(runs)
        return summarise(folder.table(), "c0de")


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    losing = [row(OFF, seed, lost=30, lost_reported=0, tolerated="T4") for seed in (3, 7)]
    fine = [row(OFF, seed, unavailable_ms=600 * seed) for seed in (1, 2, 4, 5, 6, 8, 9, 10)]
    balanced = [row(CELL, seed) for seed in range(1, 10)]
    balanced.append(row(CELL, 10, check="T5", sentence="the leader <1> ends early", lost=999))
    return summary_of([*losing, *fine, *balanced], tmp_path)


def test_the_runs_of_a_cell_are_summed_up(sweep: Sweep) -> None:
    off, balanced = sweep.cells
    assert (off.cell, balanced.cell) == (OFF, CELL)
    assert (off.runs, off.loss.value, off.lost.value, off.lost_in_all) == (10, 0.2, 6.0, 60)
    assert [loss.seed for loss in off.losses] == [3, 7]
    assert off.losses[0].replay == f"heirlog sim replay 3 --scenario {OFF.scenario}"


def test_a_run_that_broke_a_rule_is_named_and_left_out_of_the_figures(sweep: Sweep) -> None:
    balanced = sweep.cells[1]
    assert (balanced.runs, balanced.lost_in_all, balanced.loss.value) == (9, 0, 0.0)
    assert [one.check for one in balanced.broken] == ["T5"]
    assert sweep.runs == 20
    assert f"T5: the leader &lt;1&gt; ends early <code>heirlog sim replay 10 --scenario {CELL.scenario}" in page(sweep)


def test_a_run_that_was_cut_off_does_not_count_although_no_check_failed(tmp_path: Path) -> None:
    (only,) = summary_of([row(CELL, 1), row(CELL, 2, complete=False, partition_ms=0, lost=7)], tmp_path).cells
    assert (only.runs, only.lost_in_all, only.unavailable.value) == (1, 0, 0.1)
    assert [one.check for one in only.broken] == [CUT_OFF]


def test_the_page_has_the_figures_the_plots_and_every_loss_with_its_command(sweep: Sweep) -> None:
    text = page(sweep)
    assert "20 simulated runs, 10 of each combination" in text
    assert "<td>20.0 % (5.7-51.0)</td>" in text
    assert text.count("<svg ") == 2
    for seed in (3, 7):
        assert f"<li>30 records, 0 of them reported: <code>heirlog sim replay {seed} --scenario {OFF.scenario}" in text


def test_the_page_needs_nothing_from_elsewhere(sweep: Sweep) -> None:
    text = page(sweep)
    assert re.findall(r"(?i)https?:|//|<script|<link|<img|<iframe|\bsrc=|\bhref=|url\(|@import", text) == []


class Nesting(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Nothing to close."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_what_is_opened_on_the_page_is_closed(sweep: Sweep) -> None:
    nesting = Nesting()
    nesting.feed(page(sweep))
    assert nesting.open == []


def test_of_very_many_losses_the_page_says_where_the_others_are(tmp_path: Path) -> None:
    text = page(summary_of([row(OFF, seed, lost=1) for seed in range(1, LISTED_MAX + 6)], tmp_path))
    assert text.count("<li>1 records") == LISTED_MAX
    assert "5 more: column <code>replay</code>" in text


def test_a_sweep_without_runs_has_a_page(tmp_path: Path) -> None:
    assert "0 simulated runs" in page(summary_of([], tmp_path))


def circles(svg: str) -> Iterator[tuple[float, float]]:
    return (
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="5" fill="#\w+"><', svg)
    )


def test_a_plot_has_a_dot_per_cell_higher_where_more_was_lost(sweep: Sweep) -> None:
    svg = plot("Loss & more", list(sweep.cells), lambda each: each.loss)
    (off_x, off_y), (balanced_x, balanced_y) = circles(svg)
    assert off_x < balanced_x
    assert off_y < balanced_y, "SVG counts from the top"
    assert "Loss &amp; more" in svg
    assert standalone(svg).startswith('<svg xmlns="http://www.w3.org/2000/svg" width=')
