"""`heirlog context list|use|create|delete`: which clusters there are, and which one commands talk to by default."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from heirlog.cli import complete
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, NamesOnly, show_names, show_rows
from heirlog.local import contexts, properties

app = typer.Typer(help="Choose the cluster that commands talk to by default.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The context.", show_default=False, autocompletion=complete.context_names)
]


@app.command("list")
def list_contexts(names_only: NamesOnly = False, as_json: Json = False) -> None:
    """List the contexts. A star marks the default, and a note a cluster of `heirlog up` whose data folder is gone."""
    if names_only:
        show_names(contexts.names(), as_json)
        return
    chosen = contexts.current_name()
    found = [contexts.read(name) for name in contexts.names()]
    rows = [
        {
            "context": context.name,
            "is_default": context.name == chosen,
            "default": "*" if context.name == chosen else "",
            "bootstrap_servers": context.bootstrap_servers,
            "file": str(contexts.path_of(context.name)),
            "shown_file": _from_home(contexts.path_of(context.name)),
            "data_is_gone": context.is_left_over,
            "note": "its data folder is gone" if context.is_left_over else "",
        }
        for context in found
    ]
    if as_json:
        for row in rows:
            del row["default"], row["note"], row["shown_file"]
    columns = {
        "default": "Default",
        "context": "Context",
        "bootstrap_servers": "BootstrapServers",
        "shown_file": "File",
    }
    if any(context.is_left_over for context in found):
        columns["note"] = "Note"
    show_rows(columns, rows, as_json)


def _from_home(path: Path) -> str:
    """As a shell takes it, so that a row fits a terminal."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


@app.command("use")
def use(name: Name) -> None:
    """Make a context the default. For one command, give it --context; for one terminal, set $HEIRLOG_CONTEXT."""
    contexts.use(name)
    print(f"Commands talk to {name} ({contexts.read(name).bootstrap_servers}) by default.")
    here = contexts.named()
    if here not in (None, name):
        print(f"In this terminal they talk to {here}: {contexts.VARIABLE} is set", file=sys.stderr)


@app.command("create")
def create(
    name: Name,
    bootstrap_server: Annotated[
        str | None,
        typer.Option("--bootstrap-server", "-b", help="host:port of a broker, several separated by commas."),
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option("--command-config", help="Client properties as for Kafka's tools, such as security.protocol."),
    ] = None,
) -> None:
    """Write a context. Its file may hold a password: only you can read it."""
    given = {} if command_config is None else properties.read(command_config)
    if bootstrap_server is not None:
        given[contexts.SERVERS] = bootstrap_server
    if not given.get(contexts.SERVERS):
        raise UsageError(f"give the brokers: --bootstrap-server HOST:PORT, or {contexts.SERVERS} in --command-config")
    if contexts.path_of(name).exists():
        raise CommandError(f"there is a context {name}: heirlog context delete {name} removes it")
    from heirlog.client.security import SecurityError, security_from_properties

    try:
        security_from_properties(given)
    except SecurityError as error:
        raise CommandError(f"{command_config}: {error}") from error
    print(f"Wrote {contexts.write(name, given, 'Written by heirlog context create NAME.')}")


@app.command("delete")
def delete(name: Name) -> None:
    """Remove a context. The cluster stays as it is."""
    contexts.delete(name)
    print(f"Removed {name}.")
