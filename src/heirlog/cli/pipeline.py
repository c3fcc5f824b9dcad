"""`heirlog pipeline`: pipelines that a TOML file describes, on Spark. Needs the extra `heirlog[spark]`."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.errors import EXIT_INTERRUPTED, CommandError
from heirlog.cli.progress import batches
from heirlog.cli.render import Json, laid_out, show_json
from heirlog.cli.spark import Conf, Master, needs_spark, settings_of
from heirlog.cli.waiting import say

if TYPE_CHECKING:
    from rich.console import Group

    from heirlog.spark.pipeline.report import Report
    from heirlog.spark.pipeline.spec import Pipeline
    from heirlog.spark.pipeline.status import Status

app = typer.Typer(help="Move data in and out with Spark, as a TOML file describes it.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The pipeline file.", show_default=False)]
BROKERS_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 1.0
SHOW_CURSOR = b"\x1b[?25h"
"""A bar hides it while it is on the terminal."""


@app.command("run")
def run(
    file: File,
    master: Master = "local[*]",
    conf: Conf = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", help="Serve Prometheus metrics on this port of localhost meanwhile; 0: any port."
        ),
    ] = None,
    brokers_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="How long brokers need not answer before Spark starts.")
    ] = BROKERS_TIMEOUT_S,
    json: Json = False,
) -> None:
    """Run a pipeline until its input is read, or a continuous one until Ctrl-C; prints a report."""
    ending = _Ending(file)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ending.on_signal)
    with needs_spark("pipelines"):
        from heirlog.spark.pipeline.load import load
        from heirlog.spark.pipeline.run import run as run_pipeline
        from heirlog.spark.session import silence_py4j

        ending.when_asked = silence_py4j
        pipeline = load(file)
        with ExitStack() as stack:
            if metrics_port is not None:
                from heirlog.spark.pipeline.metrics import served

                port = stack.enter_context(served(pipeline, metrics_port))
                print(f"metrics on http://127.0.0.1:{port}/metrics", file=sys.stderr)
            show = stack.enter_context(batches(pipeline.name, hidden=json))
            report = run_pipeline(
                pipeline,
                master=master,
                conf=settings_of(conf),
                until=ending,
                on_look=show,
                brokers_timeout_s=brokers_timeout,
                on_wait=say,
            )
        _show_report(pipeline, report, json)
        if not ending.is_asked:
            return
        if pipeline.mode == "batch":
            # a program that waits for a batch to be done must not take this for it
            raise CommandError(f"{pipeline.name} was stopped before its input was read: run it again to continue")
        print(f"{pipeline.name} was stopped; run it again to continue from there", file=sys.stderr)


class _Ending:
    """What signals do to a run: `run` asks it whether to end, from when its queries have started.

    Before that nothing is begun, and the process just ends. So it does with a second signal, while Spark stops: every
    finished batch is in its table, and the next run repeats the one that was cut short.
    """

    def __init__(self, file: Path) -> None:
        self.is_asked = False
        self.when_asked: Callable[[], None] = lambda: None
        self._is_running = False
        self._file = file

    def __call__(self) -> bool:
        self._is_running = True
        return self.is_asked

    def on_signal(self, *_: object) -> None:
        if self._is_running and not self.is_asked:
            self.is_asked = True
            self.when_asked()
            return
        when = "while Spark stopped; run it again to continue" if self.is_asked else "before its query began"
        # print may be at work below this very handler
        os.write(2, f"heirlog: {self._file} was stopped {when}\n".encode())
        if self._is_running and sys.stderr.isatty():
            os.write(2, SHOW_CURSOR)
        os._exit(EXIT_INTERRUPTED)


def _show_report(pipeline: Pipeline, report: Report, json: bool) -> None:
    if json:
        show_json({"name": pipeline.name, **report.as_json()})
        return
    print(
        f"{pipeline.name}: {report.batches} batches, {report.rows_in} rows in, {report.rows_out} out, "
        f"{report.rejected} rejected"
    )
    for topic, partitions in report.offsets.items():
        for partition, (first, after) in partitions.items():
            print(f"  {topic}-{partition}: offsets {first} to {after - 1}")
    if report.losses:
        from heirlog.spark.loss import Loss

        for loss in report.losses:
            print(f"  {Loss.from_json(loss)}")


@app.command("check")
def check(
    file: File,
    master: Master = "local[1]",
    conf: Conf = None,
    without_spark: Annotated[
        bool, typer.Option("--without-spark", help="Do not check the schema and the SQL.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what is wrong in a pipeline file, by line; nothing is read or written."""
    with needs_spark("pipelines"):
        from heirlog.spark import scratch
        from heirlog.spark.pipeline.check import check as check_file
        from heirlog.spark.pipeline.run import start_spark

        found = check_file(file)
        if not found and not without_spark:
            # Spark's error is shown as a sentence with its line, so that the user need not find Spark's log
            log = scratch.folder() / "spark.log"
            found = check_file(file, start_spark(master, settings_of(conf), "heirlog pipeline check", log))
    if json:
        show_json({"problems": [{"line": problem.line, "sentence": problem.sentence} for problem in found]})
    else:
        for problem in found:
            print(f"{file}:{problem.line}: {problem.sentence}")
    if found:
        raise typer.Exit(1)
    if not json:
        print(f"{file}: nothing wrong found")


@app.command("status")
def status(
    file: File,
    once: Annotated[bool, typer.Option("--once", help="Print the progress once instead of a live view.")] = False,
    json: Json = False,
) -> None:
    """Show the progress of a pipeline: positions, latest offsets, lag, rate and batch times."""
    with needs_spark("pipelines"):
        from rich.console import Console
        from rich.live import Live

        from heirlog.spark.pipeline.load import load
        from heirlog.spark.pipeline.status import status as look

        pipeline = load(file)
        if json:
            show_json(status_json(look(pipeline)))
            return
        console = Console(highlight=False, markup=False, soft_wrap=True)
        width = console.width if console.is_terminal else None
        if once or not console.is_terminal:
            console.print(_status_lines(look(pipeline), width))
            return
        with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
            while True:
                live.update(_status_lines(look(pipeline), console.width), refresh=True)
                time.sleep(_LOOK_EVERY_S)


def status_json(seen: Status) -> dict[str, Any]:
    return {
        "name": seen.name,
        "committed": seen.committed,
        "rate": seen.rate,
        "trouble": seen.trouble,
        "partitions": [
            {"topic": p.topic, "partition": p.partition, "position": p.position, "latest": p.latest, "lag": p.lag}
            for p in seen.partitions
        ],
        "sums": seen.sums.as_json(),
    }


def _status_lines(seen: Status, width: int | None) -> Group:
    from rich.console import Group
    from rich.text import Text

    from heirlog.spark.pipeline.status import age_ms

    last = seen.batches[-1] if seen.batches else None
    sums = f"{seen.sums.rows_in} rows in, {seen.sums.rows_out} out, {seen.sums.rejected} rejected"
    if last is not None:
        sums += f"; batch {last.batch_id} took {last.took_ms} ms, {age_ms(last) / 1000:.0f} s ago"
    if seen.rate is not None:
        sums += f"; {seen.rate:,.0f} rows/s"
    if seen.trouble is not None:
        sums += f"; {seen.trouble}"
    done = "no batch committed yet" if seen.committed < 0 else f"batch {seen.committed} committed"
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "position": "Position",
        "latest": "LatestOffset",
        "lag": "Lag",
    }
    rows = [{key: "?" if (value := getattr(row, key)) is None else value for key in columns} for row in seen.partitions]
    return Group(Text(f"{seen.name}: {done}"), *(laid_out(columns, rows, width) if rows else ()), Text(sums))


@app.command("compact")
def compact(
    file: File,
    target_mib: Annotated[int, typer.Option("--target-mib", min=1, help="Size of the files to write.")] = 128,
    json: Json = False,
) -> None:
    """Merge the small files of finished batches. Meanwhile, readers of the directory see each row exactly once."""
    with needs_spark("pipelines"):
        from dataclasses import asdict

        from heirlog.spark.pipeline.compact import compact as compact_tables
        from heirlog.spark.pipeline.load import load

        done = compact_tables(load(file), target_mib * 1024 * 1024)
    if json:
        show_json({"tables": [asdict(table) for table in done]})
        return
    if not done:
        print("nothing to compact: this pipeline has not written a table yet")
    for table in done:
        print(f"{table.table}: {table.batches} batches, {table.files_before} files before, {table.files_after} after")


@app.command("package")
def package(
    target: Annotated[Path, typer.Argument(metavar="FILE.zip", help="The archive to write.", show_default=False)],
) -> None:
    """Write the archive for --py-files or addArtifacts, for workers on which heirlog is not installed."""
    from heirlog.spark.pipeline.package import LIBRARIES
    from heirlog.spark.pipeline.package import package as write_package

    print(f"{write_package(target)}: the workers' Python needs {', '.join(LIBRARIES)} besides")
