"""`heirlog sim replay`: run one seed of the simulator again and see what it did."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Annotated

import typer

from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, show_json, show_rows

app = typer.Typer(help="The seeded simulator: the product's nodes in virtual time.", no_args_is_help=True)


@app.command("guards")
def list_guards(as_json: Json = False) -> None:
    """List the guards: rules of the protocol that `replay --without-guard` can switch off.

    Each has the function that implements it, and a scenario that shows the loss without it.
    """
    from heirlog.sim.guards import GUARDS

    columns = {"number": "Guard", "where": "Where", "scenario": "Scenario", "rule": "Rule"}
    rows = [
        {
            "number": guard.number,
            "rule": guard.rule,
            "where": f"{guard.module}.{guard.predicate}",
            "scenario": guard.scenario,
        }
        for guard in GUARDS.values()
    ]
    show_rows(columns, rows, as_json)


@app.command("replay")
def replay(
    seed: Annotated[int, typer.Argument(help="The seed of the run.")],
    without_guard: Annotated[
        int | None, typer.Option("--without-guard", help="Run without this guard (see `heirlog sim guards`).")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="The scenario: swarm, or a script. An unknown name lists all of them.")
    ] = "swarm",
    as_json: Json = False,
) -> None:
    """Run SEED again; exit code 1 if it breaks an invariant."""
    from heirlog.sim.guards import GUARDS
    from heirlog.sim.run import run_seed
    from heirlog.sim.scenarios import SCENARIOS

    if scenario not in SCENARIOS:
        raise UsageError(f"there is no scenario {scenario}; there are {', '.join(SCENARIOS)}")
    if without_guard is not None and without_guard not in GUARDS:
        raise UsageError(f"there is no guard {without_guard}; heirlog sim guards lists them")
    report = run_seed(seed, without_guard=without_guard, scenario=scenario)
    if as_json:
        # `asdict` makes a Counter of a Counter's items
        values = {**asdict(replace(report, counters=Counter())), "counters": dict(report.counters)}
        show_json({**values, "passed": report.passed})
    else:
        print(report)
    if report.violation is not None:
        raise CommandError(f"seed {seed} breaks {report.violation.check}: {report.violation.sentence}")
