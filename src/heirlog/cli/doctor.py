"""`heirlog doctor`: are a stopped node's data folders complete, and what would the next start change in them?

Exit code 0: nothing is damaged; 1: something is; 2: nothing was checked (a node is running there, no log directory).
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import EXIT_FAILED, UsageError
from heirlog.cli.render import Json, show_json

if TYPE_CHECKING:
    from heirlog.cli.offline.findings import Finding, Report

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
REDRAW_S = 0.2

Directories = Annotated[
    list[Path],
    typer.Argument(
        help="Log directories, or folders that contain some, such as the data folder of a local cluster.",
        metavar="DIR...",
    ),
]


def doctor(directories: Directories, as_json: Json = False) -> None:
    """Check a stopped node's data folders: show what its next start would truncate or rebuild. Changes nothing."""
    from heirlog.cli.offline.doctor import examine
    from heirlog.cli.offline.open_transactions import known_to_coordinators

    found = [path for directory in directories for path in log_directories(directory)]
    refuse_others(found)
    reports: list[Report] = []
    with locked(found):
        known = known_to_coordinators(found)
        progress = Progress(sum(_log_bytes(path) for path in found))
        for path in found:
            reports.append(examine(str(path), progress.read, known))
            progress.clear()
            if not as_json:
                _print(reports[-1])
    if as_json:
        show_json({"healthy": all(r.healthy for r in reports), "directories": [r.as_json() for r in reports]})
    if not all(report.healthy for report in reports):
        raise typer.Exit(EXIT_FAILED)


def log_directories(directory: Path) -> list[Path]:
    """The folder itself, or the log directories below it where it is none. Raises UsageError."""
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    if not (directory / META_PROPERTIES).exists():
        inner = sorted(path.parent for depth in ("*", "*/*") for path in directory.glob(f"{depth}/{META_PROPERTIES}"))
        if inner:
            return inner
    return [directory]


def refuse_others(found: list[Path]) -> None:
    """What is not empty and holds neither a log nor the mark of a node. Raises UsageError."""
    for path in found:
        is_log_directory = (path / META_PROPERTIES).exists() or any(path.glob("*-*/*.log"))
        if not is_log_directory and any(path.iterdir()):
            raise UsageError(f"{path} is no log directory of a node, and none is below it; name one of log.dirs")


@contextmanager
def locked(paths: list[Path]) -> Iterator[None]:
    """No node starts on these directories meanwhile. Raises UsageError where one runs.

    Nothing is created: without a lock file no node has ever started there.
    """
    locks: list[int] = []
    try:
        for path in paths:
            if (path / LOCK).is_file():
                locks.append(os.open(path / LOCK, os.O_RDONLY))
                try:
                    fcntl.flock(locks[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
                    # Apache Kafka's lock is of the other kind
                    fcntl.lockf(locks[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    raise UsageError(
                        f"{path} is in use by a running node (which has locked {LOCK}): stop the node first"
                    ) from None
        yield
    finally:
        for lock in locks:
            os.close(lock)


def _log_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("*/*.log"))


class Progress:
    """One line on a terminal that says how much was read."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown_at = time.monotonic()
        self._visible = False

    def read(self, count: int) -> None:
        self._done += count
        if sys.stderr.isatty() and time.monotonic() - self._shown_at > REDRAW_S:
            self._shown_at = time.monotonic()
            self._visible = True
            print(f"\r{self._done >> 20} of {self._total >> 20} MiB read ", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._visible:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _print(report: Report) -> None:
    whose = f"node {report.node_id} of cluster {report.cluster_id}" if report.cluster_id else "nobody's"
    print(f"{report.path}: {whose}, {report.logs} logs, {report.segments} segments, {report.bytes} bytes")
    for finding in report.findings:
        _print_finding(finding, report.path)
    if report.bytes_to_scan:
        print(f"  the next start reads {report.bytes_to_scan} bytes again and rebuilds their indexes")
    print("  healthy" if report.healthy else "  damaged: see above")


def _print_finding(finding: Finding, directory: str) -> None:
    where = os.path.relpath(finding.path, directory)
    print(f"  {finding.severity.value}: {where}: {finding.sentence}")
    if finding.next_start:
        print(f"    at the next start: {finding.next_start}")
