"""`heirlog sim sweep`: many runs of the scenario `durability` on Spark, and a page of what they show.

The folder keeps the runs. A sweep that was stopped or killed continues where it was; one that is complete writes its
page again, without Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.interrupts import signals_interrupt
from heirlog.cli.progress import progress_bar
from heirlog.cli.render import Json, show_json, show_rows
from heirlog.cli.spark import Conf, Master, needs_spark, settings_of

if TYPE_CHECKING:
    from heirlog.sim.durability.cell import Cell, Policy
    from heirlog.spark.sweep.folder import SweepFolder
    from heirlog.spark.sweep.summary import Sweep

Seeds = Annotated[
    str, typer.Option(help="Runs of each combination: seeds 1 to N, as N or 1..N. May grow in the same folder.")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the table of runs and the page.")]
Factors = Annotated[str, typer.Option("--replication-factor", help="Replication factors, as in 3,5.")]
MinIsrs = Annotated[str, typer.Option("--min-isr", help="Values of min ISR, as in 1,2.")]
Strategies = Annotated[
    str | None,
    typer.Option("--strategy", help="Of elr-off, last-known-leader, balanced, aggressive, none. Default: all."),
]
Mtbfs = Annotated[
    str, typer.Option("--mtbf", help="Mean virtual seconds that a broker runs between two failures, as in 20,10,5.")
]


def sweep(
    out: Out,
    seeds: Seeds = "20",
    replication_factor: Factors = "3",
    min_isr: MinIsrs = "1,2",
    strategy: Strategies = None,
    mtbf: Mtbfs = "10,5",
    master: Master = "local[*]",
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Measure lost records and unavailable time of election strategies, in many simulated runs on Spark.

    Every combination of the parameters is run with every seed. Runs that are in the folder already are not run again.
    """
    factors, min_isrs, mtbfs = (
        _numbers(name, given)
        for name, given in (("--replication-factor", replication_factor), ("--min-isr", min_isr), ("--mtbf", mtbf))
    )
    last_seed = _last_seed(seeds)
    settings = settings_of(conf)
    with needs_spark("sweeps"), signals_interrupt():
        from heirlog.sim.code_version import code_version
        from heirlog.spark.sweep.folder import left, opened
        from heirlog.spark.sweep.grid import Grid, SweepError

        try:
            grid = Grid(factors, min_isrs, _policies(strategy), mtbfs)
            with opened(out, grid, code_version()) as folder:
                runs = left(folder, grid, last_seed)
                try:
                    if runs:
                        _run(runs, folder, master, settings, as_json)
                finally:
                    result = _write_page(folder)
        except SweepError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"--out {out} cannot be used: {error.strerror or error}") from error
    if as_json:
        cells = [each.as_json() for each in result.cells]
        show_json({"runs": result.runs, "new": len(runs), "page": str(folder.page), "cells": cells})
        return
    _show(result)
    print(f"{result.runs} runs, {len(runs)} of them new: {folder.page}")


def _last_seed(given: str) -> int:
    """Raises UsageError."""
    last = given.removeprefix("1..")
    if not (last.isascii() and last.isdigit() and int(last)):
        raise UsageError(f"--seeds {given}: give the number of seeds, the first of which is 1, as in 20 or 1..20")
    return int(last)


def _numbers(option: str, given: str) -> tuple[int, ...]:
    """Raises UsageError."""
    parts = [part.strip() for part in given.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"{option} {given}: give numbers with commas between them, as in 1,2")
    return tuple(dict.fromkeys(map(int, parts)))


def _policies(given: str | None) -> tuple[Policy, ...]:
    """Raises UsageError."""
    from heirlog.sim.durability.cell import Policy

    if given is None:
        return tuple(Policy)
    known = {policy.value: policy for policy in Policy}
    names = [name.strip() for name in given.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"--strategy {given}: there is no {unknown[0]!r}; there are {', '.join(known)}")
    return tuple(dict.fromkeys(known[name] for name in names))


def _run(
    runs: Sequence[tuple[Cell, int]], folder: SweepFolder, master: str, conf: Mapping[str, str], as_json: bool
) -> None:
    """Raises PipelineError, SweepError and OSError."""
    from heirlog.spark.pipeline.run import start_spark
    from heirlog.spark.session import silence_py4j
    from heirlog.spark.sweep.job import run_all

    with progress_bar(as_json) as progress:
        bar = progress.add_task("runs", total=len(runs))
        done = 0

        def on_done(count: int) -> None:
            nonlocal done
            done += count
            progress.advance(bar, count)

        # Spark's own bar would be written over ours
        settings = {"spark.ui.showConsoleProgress": "false", **conf}
        # it would log a call that Ctrl-C interrupts; what fails is raised, too
        silence_py4j()
        spark = start_spark(master, settings, "heirlog sweep", folder.place / "spark.log")
        try:
            run_all(spark, runs, folder, on_done)
        except KeyboardInterrupt:
            message = f"stopped after {done} of {len(runs)} runs: run the command again to continue"
            print(f"heirlog: {message}", file=sys.stderr)
            raise
        spark.stop()


def _write_page(folder: SweepFolder) -> Sweep:
    """Of all runs in the folder. Raises SweepError and OSError."""
    from heirlog.sim.code_version import code_version
    from heirlog.spark.sweep.page import page
    from heirlog.spark.sweep.summary import summarise

    result = summarise(folder.table(), code_version())
    folder.write_page(page(result))
    return result


def _show(result: Sweep) -> None:
    from heirlog.spark.sweep.tables import figures

    columns = {
        "runs": "Runs",
        "loss": "ProbabilityOfLoss",
        "lost": "LostPerRun",
        "reported": "Reported",
        "unavailable": "Unavailable",
        "lossy": "LossyElections",
        "scenario": "Scenario",
    }
    rows = [dict(zip(columns, (*figures(each), each.cell.scenario), strict=True)) for each in result.cells]
    show_rows(columns, rows, as_json=False)
