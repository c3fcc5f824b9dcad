"""`--context NAME` and `--command-config FILE`: options of every command that has --bootstrap-server.

    --context           a context for one command: its addresses, and how it logs in
    --command-config    how to log in, in Kafka's client properties, as Kafka's tools take it; perhaps the addresses too

They are added to the commands here, and the environment has their values then, so that no command has to pass them on.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Final

import typer

from heirlog.cli import complete
from heirlog.cli.connect import BOOTSTRAP_VARIABLE, COMMAND_CONFIG, COMMAND_CONFIG_VARIABLE
from heirlog.cli.errors import UsageError
from heirlog.local import contexts

CONTEXT: Final = "--context"
_GIVEN: Final = "heirlog.cluster-option"


def _chosen(ctx: typer.Context, param: typer.CallbackParam, value: str | None) -> None:
    """Before --bootstrap-server looks into the environment: options come before variables."""
    if value is None:
        return
    option = str(param.opts[0])
    if not value:
        raise UsageError(f"{option} needs a name")
    if ctx.meta.setdefault(_GIVEN, option) != option:
        raise UsageError(f"{CONTEXT} and {COMMAND_CONFIG} exclude each other: a context has client properties too")
    if option == CONTEXT:
        os.environ[contexts.VARIABLE] = value
        os.environ.pop(BOOTSTRAP_VARIABLE, None)
        os.environ.pop(COMMAND_CONFIG_VARIABLE, None)
    else:
        os.environ[COMMAND_CONFIG_VARIABLE] = value


def _declared(
    chosen_context: Annotated[
        str | None,
        typer.Option(
            CONTEXT,
            metavar="NAME",
            help=f"The context of the cluster, for this command only; also ${contexts.VARIABLE}.",
            autocompletion=complete.context_names,
            callback=_chosen,
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
    client_properties: Annotated[
        str | None,
        typer.Option(
            COMMAND_CONFIG,
            metavar="FILE",
            help="Client properties as for Kafka's tools, such as security.protocol.",
            callback=_chosen,
            is_eager=True,
            expose_value=False,
        ),
    ] = None,
) -> None:
    """The options, as typer reads them."""


def add_to(command: Any) -> None:
    """Behind --bootstrap-server, if the command connects to a cluster; not in the place of its own option."""
    at = next(
        (
            number
            for number, parameter in enumerate(command.params)
            if getattr(parameter, "envvar", None) == BOOTSTRAP_VARIABLE
        ),
        None,
    )
    if at is None:
        return
    declaring = typer.Typer(add_completion=False)
    declaring.command()(_declared)
    own = {option for parameter in command.params for option in parameter.opts}
    command.params[at + 1 : at + 1] = [
        option for option in typer.main.get_command(declaring).params if own.isdisjoint(option.opts)
    ]
