"""`heirlog users list|set|delete`: users that log in with a password (SCRAM).

    heirlog users set alice                      asks for the password; or it is the first line of the standard input
    heirlog users list
    heirlog users delete alice

kafka-configs works as well: --entity-type users --entity-name alice --add-config 'SCRAM-SHA-512=[password=...]'.
"""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.render import Json, NamesOnly, show_names, show_rows
from heirlog.security.scram import BY_MECHANISM, ITERATIONS_MAX, ITERATIONS_MIN, ScramMechanism

app = typer.Typer(help="Show and change users that log in with a password.", no_args_is_help=True)

DEFAULT_MECHANISM: Final = ScramMechanism.SHA_512
Name = Annotated[str, typer.Argument(metavar="USER", help="The user, without User: before the name.")]
Mechanism = Annotated[
    str, typer.Option("--mechanism", help=f"{' or '.join(BY_MECHANISM)}; a user may have a password for each.")
]


@app.command("list")
def list_users(
    names_only: NamesOnly = False, bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP, as_json: Json = False
) -> None:
    """List the users and their mechanisms. Passwords cannot be shown: the cluster does not keep them."""
    from heirlog.client.scram import describe_users

    with connected(bootstrap_server) as client:
        found = client.run(describe_users())
    if names_only:
        show_names(sorted(found), as_json)
        return
    rows = [
        {"user": user, "mechanism": mechanism.mechanism, "iterations": iterations}
        for user, mechanisms in sorted(found.items())
        for mechanism, iterations in mechanisms.items()
    ]
    show_rows({"user": "User", "mechanism": "Mechanism", "iterations": "Iterations"}, rows, as_json)


@app.command("set")
def set_user(
    user: Name,
    mechanism: Mechanism = DEFAULT_MECHANISM.mechanism,
    iterations: Annotated[
        int, typer.Option(min=ITERATIONS_MIN, max=ITERATIONS_MAX, help="Of the hash of the password.")
    ] = ITERATIONS_MIN,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a user, or give it another password. Connections that are open stay so.

    The password is asked for, or is the first line of the standard input.
    """
    from heirlog.client.scram import set_password
    from heirlog.local.secure import new_salt

    scram = _mechanism(mechanism)
    if not user.isascii() or not user.isprintable():
        raise UsageError(f"{user!r} cannot log in with SCRAM, whose names are ASCII; PLAIN has no such limit")
    password = _password()
    with connected(bootstrap_server) as client:
        client.run(set_password(user, scram, password, new_salt(), iterations))
    print(f"{user} can log in with {scram.mechanism}. What it may do, ACLs say: heirlog acls add --help.")


@app.command("delete")
def delete_user(
    user: Name,
    mechanism: Mechanism = DEFAULT_MECHANISM.mechanism,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete the password of a user. Connections that are open stay so, until connections.max.reauth.ms."""
    from heirlog.client.scram import delete_password

    scram = _mechanism(mechanism)
    with connected(bootstrap_server) as client:
        client.run(delete_password(user, scram))
    print(f"{user} has no password for {scram.mechanism} any more.")


def _mechanism(name: str) -> ScramMechanism:
    found = BY_MECHANISM.get(name.upper())
    if found is None:
        raise UsageError(f"--mechanism {name}: one of {', '.join(BY_MECHANISM)}")
    return found


def _password() -> str:
    """Never an argument: those are visible to every user of the machine. Raises CommandError."""
    if sys.stdin.isatty():
        password: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandError("the password is empty; write it to the standard input, or type it when asked")
    return password
