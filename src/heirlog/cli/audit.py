"""`heirlog audit`: are the replicas' logs complete and equal, and did the metadata ever break a rule? On Spark.

Exit code 0: no findings; 1: some; 2: nothing was audited (a node is running there, no such folder, no place for the
tables).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.doctor import Directories, locked, log_directories, refuse_others
from heirlog.cli.errors import EXIT_FAILED, CommandError, UsageError
from heirlog.cli.interrupts import signals_interrupt
from heirlog.cli.render import Json, show_json
from heirlog.cli.spark import Conf, Master, needs_spark, settings_of

if TYPE_CHECKING:
    from heirlog.spark.audit.audit import Audit

MARK = "_audit"
"""An empty file that says that the folder is an audit's: the next one may replace its tables."""
SHOWN_MAX = 50

Out = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the tables and the page; workers write to it too.")
]


def audit(
    directories: Directories, out: Out, master: Master = "local[*]", conf: Conf = None, as_json: Json = False
) -> None:
    """Check copies or stopped log directories of all replicas against each other and the metadata log, on Spark.

    Works on directories of heirlog and of Apache Kafka, and changes nothing in them.
    """
    found = list(dict.fromkeys(path for directory in directories for path in log_directories(directory)))
    refuse_others(found)
    with needs_spark("audits"), signals_interrupt(), locked(found):
        from heirlog.spark.audit.audit import run
        from heirlog.spark.audit.inventory import AuditError, take_inventory
        from heirlog.spark.audit.job import SPARK_ERRORS
        from heirlog.spark.pipeline.run import sentence_of, start_spark
        from heirlog.spark.session import silence_py4j

        try:
            inventory = take_inventory([str(path) for path in found])
        except AuditError as error:
            raise UsageError(str(error)) from error
        if not inventory.logs:
            raise UsageError(f"there is no log of a partition in {', '.join(map(str, found))}")
        settings = settings_of(conf)
        _prepare(out, found)
        log = out / "spark.log"
        # it would log a call that Ctrl-C interrupts; what fails is raised, too
        silence_py4j()
        spark = start_spark(master, settings, "heirlog audit", log)
        try:
            result = run(spark, inventory, out, _say)
        except SPARK_ERRORS as error:
            raise CommandError(
                f"the audit has failed: {sentence_of(error).rstrip('.')}. Spark's log is {log}"
            ) from error
        except OSError as error:
            raise CommandError(f"the audit has failed: {error}") from error
    if as_json:
        show_json(result.as_json())
    else:
        _print(result)
    if result.findings:
        raise typer.Exit(EXIT_FAILED)


def _prepare(out: Path, directories: list[Path]) -> None:
    """Make an empty folder of it. Raises UsageError where it holds something else."""
    target = out.resolve()
    for path in directories:
        if target.is_relative_to(path.resolve()):
            raise UsageError(f"--out {out} is inside {path}, which is audited: give a folder outside of it")
    if target.exists() and not target.is_dir():
        raise UsageError(f"--out {out} is a file: give a folder")
    try:
        if target.is_dir() and any(target.iterdir()):
            if not (target / MARK).exists():
                raise UsageError(f"--out {out} holds files that are not of an audit: give an empty or a new folder")
            shutil.rmtree(target)
        target.mkdir(parents=True, exist_ok=True)
        (target / MARK).touch()
    except OSError as error:
        raise CommandError(f"--out {out} cannot be written: {error.strerror}") from error


def _say(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _print(result: Audit) -> None:
    for finding in result.findings[:SHOWN_MAX]:
        where = f"{finding.topic}-{finding.partition}: " if finding.topic else ""
        print(f"{finding.kind}: {where}{finding.sentence}")
    if len(result.findings) > SHOWN_MAX:
        print(f"... and {len(result.findings) - SHOWN_MAX} more in {result.out}/findings.parquet")
    print(
        f"{result.partitions} partitions, {result.replicas} replicas, {result.records} records, {result.bytes} bytes: "
        f"{len(result.findings)} findings"
    )
