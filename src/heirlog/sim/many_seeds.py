"""Many seeds on all cores: each runs in a process of its own pool, and its report comes as soon as it has ended.

    seeds --at most two per process are waiting--> processes --> reports, in the order in which they end

A seed's result does not depend on the others, or on the process that runs it.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar

from heirlog.sim.run import RunReport, run_seed

T = TypeVar("T")
R = TypeVar("R")

WAITING_PER_JOB = 2


@dataclass(frozen=True, slots=True)
class SeedOptions:
    """What all seeds have in common; the members are parameters of `run_seed`."""

    scenario: str = "swarm"
    without_guard: int | None = None
    nodes: int | None = None
    controllers: int | None = None


@dataclass(slots=True)
class Summary:
    """The sum of the reports. `counters`: how often each rare state was reached; `seeds_with`: in how many seeds."""

    seeds: int = 0
    events: int = 0
    acknowledged: int = 0
    counters: Counter[str] = field(default_factory=Counter)
    seeds_with: Counter[str] = field(default_factory=Counter)
    failed: list[RunReport] = field(default_factory=list)

    def add(self, report: RunReport) -> None:
        self.seeds += 1
        self.events += report.events
        self.acknowledged += report.acknowledged
        self.counters.update(report.counters)
        self.seeds_with.update(name for name, count in report.counters.items() if count)
        if not report.passed:
            self.failed.append(report)

    def as_json(self) -> dict[str, object]:
        return {
            "seeds": self.seeds,
            "violations": [
                {
                    "seed": report.seed,
                    "scenario": report.scenario,
                    "check": report.violation.check,
                    "sentence": report.violation.sentence,
                }
                for report in self.failed
                if report.violation is not None
            ],
            "events": self.events,
            "acknowledged": self.acknowledged,
            "counters": dict(sorted(self.counters.items())),
        }


def run_many(seeds: Iterable[int], options: SeedOptions, jobs: int) -> Generator[RunReport]:
    """The reports of the seeds; see `in_processes`."""
    return in_processes(partial(_run, options), seeds, jobs)


def in_processes(function: Callable[[T], R], arguments: Iterable[T], jobs: int) -> Generator[R]:
    """What the function returns for each argument. Close the generator to end the calls that are in progress.

    jobs: processes. Raises concurrent.futures.BrokenExecutor if one of them was killed.
    """
    remaining = iter(arguments)
    # not a copy of this process: it may have threads, and macOS does not copy those safely
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context)
    running: set[Future[R]] = set()
    try:
        while True:
            for argument in islice(remaining, jobs * WAITING_PER_JOB - len(running)):
                with _interrupts_blocked():
                    running.add(pool.submit(function, argument))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        if running:
            # they would run on for seconds
            for process in multiprocessing.active_children():
                process.kill()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that start meanwhile never get them: Ctrl-C reaches every process of the terminal; this one decides.

    Processes that only ignored them later, after their imports, would print a traceback for one that comes before.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(options: SeedOptions, seed: int) -> RunReport:
    return run_seed(
        seed,
        scenario=options.scenario,
        without_guard=options.without_guard,
        nodes=options.nodes,
        controllers=options.controllers,
    )
