"""`heirlog sim`: run many seeds of the simulator, run one of them again and see what it did, and check the guards."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Set
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.interrupts import signals_interrupt
from heirlog.cli.progress import progress_bar
from heirlog.cli.render import Json, show_json, show_rows
from heirlog.ending_signals import signals_wait

if TYPE_CHECKING:
    from heirlog.sim.fault_numbers import NumberedFault
    from heirlog.sim.many_seeds import Summary
    from heirlog.sim.run import RunReport

app = typer.Typer(help="The seeded simulator: the product's nodes in virtual time.", no_args_is_help=True)

T = TypeVar("T")

DEFAULT_SEEDS = "1..100"
NODES_MIN, NODES_MAX = 3, 9
CONTROLLERS_MAX = 7
ScenarioName = Annotated[str, typer.Option(help="The scenario: swarm, or a script. An unknown name lists all of them.")]
Nodes = Annotated[
    int | None,
    typer.Option(min=NODES_MIN, max=NODES_MAX, help="Brokers of a swarm. Default: as many as the seed draws."),
]
Controllers = Annotated[
    int | None,
    typer.Option(min=1, max=CONTROLLERS_MAX, help="Controllers of a swarm. Default: as many as the seed draws."),
]
WithoutGuard = Annotated[
    int | None, typer.Option("--without-guard", help="Run without this guard (see `heirlog sim guards`).")
]
WithoutFaults = Annotated[
    str | None, typer.Option("--without-faults", help="Leave out the faults with these numbers, such as 3,7-12.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")]


@app.command("run")
def run(
    seeds: Annotated[
        str | None, typer.Option(help=f"The first and the last seed, as A..B, or one seed. Default: {DEFAULT_SEEDS}.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="In place of --seeds: so long, from a random seed on.")
    ] = None,
    jobs: Jobs = None,
    scenario: ScenarioName = "swarm",
    nodes: Nodes = None,
    controllers: Controllers = None,
    without_guard: WithoutGuard = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue after a violation, and list all of them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run many seeds on all cores; exit code 1 if one of them breaks an invariant.

    The first violation ends the run. Its report has the faults, the last log lines, and the command that replays it.
    """
    from heirlog.sim.many_seeds import SeedOptions, Summary, run_many

    _check_scenario(scenario, nodes, controllers)
    _check_guard(without_guard)
    if seeds is not None and minutes is not None:
        raise UsageError("--seeds and --minutes exclude each other")
    chosen, total = _seeds(seeds, minutes)
    summary = Summary()
    began_s = time.monotonic()
    is_stopped = False
    with signals_interrupt(), progress_bar(as_json) as progress:
        bar = progress.add_task(scenario, total=total)
        options = SeedOptions(scenario, without_guard, nodes, controllers)
        try:
            with _in_processes(run_many(chosen, options, jobs or _cores())) as reports:
                for report in reports:
                    summary.add(report)
                    progress.advance(bar)
                    if report.passed:
                        continue
                    if not as_json:
                        with signals_wait():  # so that it is whole, and what follows begins a line
                            print(report, flush=True)
                    if not keep_going:
                        break
        except KeyboardInterrupt:
            # what hours have shown is worth more than a quick end
            is_stopped = True
            of = "" if total is None else f" of {total}"
            print(f"heirlog: stopped after {summary.seeds}{of} seeds", file=sys.stderr)
    if as_json:
        show_json(summary.as_json())
    else:
        _show_summary(summary, scenario, time.monotonic() - began_s)
    if summary.failed:
        first = min(summary.failed, key=lambda report: report.seed)
        assert first.violation is not None
        raise CommandError(
            f"{len(summary.failed)} of {summary.seeds} seeds broke an invariant; {first.violation.check} in: "
            f"{first.replay_command}"
        )
    if is_stopped:
        raise KeyboardInterrupt


def _check_scenario(scenario: str, nodes: int | None = None, controllers: int | None = None) -> None:
    """Raises UsageError."""
    from heirlog.sim.scenarios import SWARMS, scenario_named

    try:
        scenario_named(scenario)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if (nodes is not None or controllers is not None) and scenario not in SWARMS:
        raise UsageError(
            f"{scenario} is a script with brokers and controllers of its own; --nodes and --controllers are for "
            f"{', '.join(SWARMS)}"
        )


def _seeds(given: str | None, minutes: float | None) -> tuple[Iterable[int], int | None]:
    """The seeds, and how many; None: until --minutes have passed. Raises UsageError."""
    if minutes is not None:
        until_s = time.monotonic() + minutes * 60
        return takewhile(lambda _: time.monotonic() < until_s, count(random.randrange(1 << 40))), None
    first, separator, last = (DEFAULT_SEEDS if given is None else given).partition("..")
    if not (first.isascii() and first.isdigit() and (not separator or (last.isascii() and last.isdigit()))):
        raise UsageError(f"--seeds {given}: give the first and the last seed, as in 1..1000, or one seed")
    low, high = int(first), int(last or first)
    if low > high:
        raise UsageError(f"--seeds {given}: the first seed is greater than the last one")
    return range(low, high + 1), high - low + 1


def _check_guard(number: int | None) -> None:
    """Raises UsageError."""
    from heirlog.sim.guards import GUARDS

    if number is not None and number not in GUARDS:
        raise UsageError(f"there is no guard {number}; heirlog sim guards lists them")


def _cores() -> int:
    return os.cpu_count() or 1


@contextmanager
def _in_processes(results: Generator[T]) -> Iterator[Generator[T]]:
    """The results while they come; what is in progress ends afterwards. Raises CommandError if a process was killed."""
    from heirlog.sim.many_seeds import ProcessKilled

    try:
        with closing(results):
            yield results
    except ProcessKilled as error:
        raise CommandError(
            "a process that ran a seed was killed, perhaps because the memory was used up: try fewer --jobs"
        ) from error


def _show_summary(summary: Summary, scenario: str, passed_s: float) -> None:
    print(
        f"{summary.seeds} seeds of {scenario}, {len(summary.failed)} failed: {summary.acknowledged} records "
        f"acknowledged, {summary.events} events, {passed_s:.1f} s"
    )
    # counters of log lines are only in the JSON
    rare = [name for name in sorted(summary.counters) if not name.startswith("log.") and summary.counters[name]]
    if rare:
        print()
        columns = {"state": "State", "seeds": "Seeds", "times": "Times"}
        rows = [{"state": n, "seeds": summary.seeds_with[n], "times": summary.counters[n]} for n in rare]
        show_rows(columns, rows, as_json=False)


@app.command("guards")
def list_guards(
    check: Annotated[
        bool, typer.Option("--check", help="Run seeds without each guard until one shows the loss; takes a minute.")
    ] = False,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """List the guards: rules of the protocol that `--without-guard` can switch off.

    Each has the function that implements it, and a scenario that shows the loss without it, or the reason why nothing
    is lost.
    """
    from heirlog.sim.guards import GUARDS

    if check:
        _check_guards(jobs, as_json)
        return
    columns = {"number": "Guard", "where": "Where", "scenario": "Scenario", "rule": "Rule"}
    rows = [
        {
            "number": guard.number,
            "rule": guard.rule,
            "where": f"{guard.module}.{guard.predicate}",
            "scenario": guard.scenario,
            "reason": guard.not_needed or None,
        }
        for guard in GUARDS.values()
    ]
    show_rows(columns, rows, as_json)


def _check_guards(jobs: int | None, as_json: bool) -> None:
    """Raises CommandError if a guard protects from nothing that its scenario can show."""
    from heirlog.sim.guard_check import checked
    from heirlog.sim.guards import GUARDS
    from heirlog.sim.many_seeds import in_processes

    found = []
    with signals_interrupt(), progress_bar(as_json) as progress:
        bar = progress.add_task("guards", total=len(GUARDS))
        with _in_processes(in_processes(checked, GUARDS, jobs or _cores())) as checks:
            for one in checks:
                found.append(one)
                progress.advance(bar)
    found.sort(key=lambda one: one.number)
    if as_json:
        show_json({"guards": [one.as_json() for one in found]})
    else:
        columns = {
            "id": "Guard",
            "scenario": "Scenario",
            "seed": "Seed",
            "check": "Breaks",
            "reason": "Not needed",
        }
        show_rows(columns, [one.as_json() for one in found], as_json=False)
    wrong = {True: "no seed needs guard", False: "a seed needs a guard that was thought not to be needed:"}
    for is_missing, sentence in wrong.items():
        numbers = [str(one.number) for one in found if not one.is_as_known and (one.seed is None) is is_missing]
        if numbers:
            raise CommandError(f"{sentence} {', '.join(numbers)}")


@app.command("replay")
def replay(
    seed: Annotated[int, typer.Argument(help="The seed of the run.")],
    without_guard: WithoutGuard = None,
    scenario: ScenarioName = "swarm",
    nodes: Nodes = None,
    controllers: Controllers = None,
    without_faults: WithoutFaults = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print what happened: faults, log lines, and why each leader was chosen.")
    ] = False,
    until: Annotated[
        float | None, typer.Option("--until", min=0, help="With --trace: only what happened up to this virtual second.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run SEED again; exit code 1 if it breaks an invariant."""
    from heirlog.sim.run import run_seed
    from heirlog.sim.story import Story

    _check_scenario(scenario, nodes, controllers)
    _check_guard(without_guard)
    if until is not None and not trace:
        raise UsageError("--until needs --trace")
    left_out = _fault_numbers(without_faults)
    stories: list[Story] = []
    report = run_seed(
        seed,
        without_guard=without_guard,
        scenario=scenario,
        nodes=nodes,
        controllers=controllers,
        without_faults=left_out,
        watch=(lambda simulation: stories.append(Story(simulation))) if trace else None,
    )
    lines = [line for story in stories for line in story.until(until)]
    if as_json:
        # `asdict` makes a Counter of a Counter's items
        plain = replace(report, counters=Counter(), without_faults=frozenset(), numbered_faults=[])
        values = {
            **asdict(plain),
            "counters": dict(report.counters),
            "without_faults": sorted(left_out),
            "numbered_faults": [_fault(fault) for fault in report.numbered_faults],
        }
        if trace:
            values["trace"] = [{"ms": line.time_us // 1000, "who": line.who, "what": line.what} for line in lines]
        show_json({**values, "passed": report.passed})
    else:
        for line in lines:
            print(line)
        print(report)
    if report.violation is not None:
        raise CommandError(f"seed {seed} breaks {report.violation.check}: {report.violation.sentence}")


@app.command("shrink")
def shrink(
    seed: Annotated[int, typer.Argument(help="The seed of a run that fails.")],
    without_guard: WithoutGuard = None,
    scenario: ScenarioName = "swarm",
    nodes: Nodes = None,
    controllers: Controllers = None,
    runs: Annotated[int, typer.Option(min=1, help="Stop after this many runs.")] = 500,
    as_json: Json = False,
) -> None:
    """Find fewer faults with which SEED still fails, and the command that replays only these.

    Exit code 1 if the seed does not fail.
    """
    from heirlog.sim.run import run_seed
    from heirlog.sim.shrink import shrunk

    _check_scenario(scenario, nodes, controllers)
    _check_guard(without_guard)

    def attempt(left_out: Set[int]) -> RunReport:
        return run_seed(
            seed,
            without_guard=without_guard,
            scenario=scenario,
            nodes=nodes,
            controllers=controllers,
            without_faults=left_out,
        )

    first = attempt(frozenset())
    if first.violation is None:
        raise CommandError(f"seed {seed} of {scenario} passes: there is nothing to shrink")
    with signals_interrupt(), progress_bar(as_json) as progress:
        bar = progress.add_task("", total=runs)

        def on_run(smallest: RunReport) -> None:
            progress.update(bar, advance=1, description=f"{len(smallest.numbered_faults)} faults")

        smallest = shrunk(first, attempt, runs, on_run)
    assert smallest.violation is not None
    if as_json:
        show_json(
            {
                "seed": seed,
                "scenario": scenario,
                "check": smallest.violation.check,
                "sentence": smallest.violation.sentence,
                "faults_before": len(first.numbered_faults),
                "faults": [_fault(fault) for fault in smallest.numbered_faults],
                "replay": smallest.replay_command,
            }
        )
        return
    print(
        f"seed {seed} breaks {smallest.violation.check} with {len(smallest.numbered_faults)} faults in place of "
        f"{len(first.numbered_faults)}: {smallest.violation.sentence}"
    )
    for fault in smallest.numbered_faults:
        print(fault)
    print(f"replay: {smallest.replay_command}")


def _fault(fault: NumberedFault) -> dict[str, object]:
    return {"number": fault.number, "ms": fault.time_us // 1000, "what": fault.what}


def _fault_numbers(given: str | None) -> frozenset[int]:
    """Raises UsageError."""
    from heirlog.sim.fault_numbers import of_ranges

    if given is None:
        return frozenset()
    try:
        return of_ranges(given)
    except ValueError as error:
        raise UsageError(f"--without-faults {given}: give numbers and ranges of them, as in 3,7-12") from error
