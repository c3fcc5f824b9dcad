"""`--command-config FILE`: how a command logs in to the cluster, in Kafka's client properties.

Every command that has --bootstrap-server takes it, as Kafka's tools do; the file may have the addresses too. It is
taken out of the command line before the command sees it, so that no command has to pass it on.
"""

from __future__ import annotations

import os
from typing import Any, Final

from heirlog.cli.errors import UsageError
from heirlog.local import properties
from heirlog.local.similar_names import check_client_properties

OPTION: Final = "--command-config"
VARIABLE: Final = "HEIRLOG_COMMAND_CONFIG"
BOOTSTRAP: Final = "bootstrap_server"
OWN: Final = "command_config"
SERVERS: Final = "bootstrap.servers"


def taken_from(arguments: list[str], app: Any) -> list[str]:
    """The command line without the option, whose value the environment has then. Raises UsageError."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    at = next((number for number, text in enumerate(arguments[:end]) if text.partition("=")[0] == OPTION), None)
    if at is None or not _is_for_us(arguments, app):
        return arguments
    _, equals, path = arguments[at].partition("=")
    after = at + 1
    if not equals:
        if after >= end:
            raise UsageError(f"{OPTION} needs the name of a file")
        path, after = arguments[after], after + 1
    os.environ[VARIABLE] = path
    return [*arguments[:at], *arguments[after:]]


def _is_for_us(arguments: list[str], app: Any) -> bool:
    """Whether the command connects to a cluster, and does not have an option of this name itself."""
    import typer

    command: Any = typer.main.get_command(app)
    for word in arguments:
        if not hasattr(command, "commands"):
            break
        command = command.commands.get(word, command)
    names = {parameter.name for parameter in command.params}
    own = any(OPTION in getattr(parameter, "opts", ()) for parameter in command.params)
    return BOOTSTRAP in names and not own


def given() -> dict[str, str] | None:
    """The properties; None without the option. Raises LocalError."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    found = properties.read(path)
    check_client_properties(path, found)
    return found
