"""`heirlog sim replay`: run one seed of the simulator again and see what it did."""

from __future__ import annotations

from typing import Annotated

import typer

from heirlog.cli.errors import CommandError
from heirlog.cli.render import Json

app = typer.Typer(help="The seeded simulator: the product's nodes in virtual time.", no_args_is_help=True)


@app.command("replay")
def replay(
    seed: Annotated[int, typer.Argument(help="The seed of the run.")],
    without_guard: Annotated[
        list[int] | None, typer.Option("--without-guard", help="Switch a guard off, to see it needed; repeatable.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run SEED again; exit code 1 if it breaks an invariant."""
    from heirlog.sim.run import run_seed

    result = run_seed(seed, without_guards=frozenset(without_guard or ()))
    raise CommandError(str(result))
