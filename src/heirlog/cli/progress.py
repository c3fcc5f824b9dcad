"""The progress of a command that takes minutes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from heirlog.spark.pipeline.looking import Look


@contextmanager
def counted(what: str, hidden: bool) -> Iterator[Callable[[int], None]]:
    """Shows a count whose end is not known. Without a terminal rich is not even loaded: that takes a while."""
    if hidden or not sys.stderr.isatty():
        yield lambda count: None
        return
    with progress_bar(hidden) as bar:
        task = bar.add_task(what, total=None)
        yield lambda count: bar.update(task, completed=count)


@contextmanager
def batches(what: str, hidden: bool) -> Iterator[Callable[[Look], None] | None]:
    """Shows which batch of a pipeline runs, and how many of its tasks are done. None without a terminal."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    bar = progress_bar(hidden)
    task = bar.add_task(what, total=None)

    def show(seen: Look) -> None:
        left = "" if seen.left is None else f", {seen.left} records left"
        bar.update(task, description=f"{what}: batch {seen.batch}{left}", completed=seen.tasks_done)
        bar.update(task, total=seen.tasks or None)
        # not before: until then a signal ends the process at once, and the cursor of the terminal would stay hidden
        bar.start()

    try:
        yield show
    finally:
        bar.stop()


def progress_bar(hidden: bool) -> Progress:
    """A bar on the terminal of standard error; nothing in a pipe, and with `--json`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)
