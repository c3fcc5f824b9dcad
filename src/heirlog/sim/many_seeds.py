"""Many seeds on all cores: each process runs one at a time, and its report comes as soon as it has ended.

    seeds --one per process--> processes --> reports, in the order in which they end

A seed's result does not depend on the others, or on the process that runs it.

A signal may raise KeyboardInterrupt between any two instructions of the caller. So the processes are not a
concurrent.futures pool: its locks, held by an interrupted caller, stop the pool's own thread, and the end of the pool
waits for that thread for ever. Here the caller has a pipe to each process, and no locks or threads.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from heirlog.ending_signals import signals_wait
from heirlog.sim.run import RunReport, run_seed

T = TypeVar("T")
R = TypeVar("R")


class ProcessKilled(Exception):
    """A process ended before the end of its call."""


class CallFailed(Exception):
    """A call raised an error: the text is its trace, since not every error can be sent to another process."""


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

    jobs: processes. Raises CallFailed and ProcessKilled.
    """
    remaining = iter(arguments)
    # not a copy of this process: it may have threads, and macOS does not copy those safely
    context = multiprocessing.get_context("spawn")
    # the first process would start it, and it unblocks signals
    resource_tracker.ensure_running()
    processes: list[SpawnProcess] = []
    running: set[Connection[Any, Any]] = set()
    try:
        for argument in islice(remaining, jobs):
            pipe, its_pipe = context.Pipe()
            process = context.Process(target=_serve, args=(its_pipe, function), daemon=True)
            with signals_wait():
                process.start()
                processes.append(process)
            # the process has it now, and its end is the end of the pipe
            its_pipe.close()
            _send(pipe, argument)
            running.add(pipe)
        while running:
            for pipe in running & set(wait(running)):
                result = _received(pipe)
                running.remove(pipe)
                for argument in islice(remaining, 1):
                    _send(pipe, argument)
                    running.add(pipe)
                yield result
    finally:
        with signals_wait():
            for process in processes:
                # a call would run on for seconds
                process.kill()
            for process in processes:
                process.join()


def _send(pipe: Connection[Any, Any], argument: object) -> None:
    """Raises ProcessKilled."""
    try:
        pipe.send(argument)
    except OSError as error:
        raise ProcessKilled from error


def _received(pipe: Connection[Any, Any]) -> Any:
    """Raises CallFailed and ProcessKilled."""
    try:
        result, trace = pipe.recv()
    except (EOFError, OSError) as error:
        raise ProcessKilled from error
    if trace is not None:
        raise CallFailed(trace)
    return result


def _serve(pipe: Connection[Any, Any], function: Callable[[T], R]) -> None:
    """Until the caller has ended."""
    with suppress(EOFError, ConnectionError):
        while True:
            argument = pipe.recv()
            try:
                pipe.send((function(argument), None))
            except Exception:
                pipe.send((None, traceback.format_exc()))


def _run(options: SeedOptions, seed: int) -> RunReport:
    return run_seed(
        seed,
        scenario=options.scenario,
        without_guard=options.without_guard,
        nodes=options.nodes,
        controllers=options.controllers,
    )
