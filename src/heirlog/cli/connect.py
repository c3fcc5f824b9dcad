"""Which cluster a command talks to: `--bootstrap-server`, else $HEIRLOG_BOOTSTRAP, else localhost:9092."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from heirlog.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from heirlog.blocking import Client

BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="HEIRLOG_BOOTSTRAP",
        help="host:port of a broker, several separated by commas.",
    ),
]
DEFAULT_BOOTSTRAP = "localhost:9092"
REACH_TIMEOUT_S = 3.0
"""Limit until any broker answers; a request may take longer (an election, a leader that returns)."""


@contextmanager
def connected(bootstrap_servers: str) -> Iterator[Client]:
    """A client of a cluster that answers; closed afterwards. Its own errors (OSError, KafkaError) are sentences.

    Raises CommandError if no broker answers.
    """
    from heirlog.blocking import Client

    try:
        client = Client(bootstrap_servers)
    except ValueError as error:
        raise UsageError(f"--bootstrap-server: {error}") from error
    try:
        try:
            client.metadata([], timeout_s=REACH_TIMEOUT_S)
        except OSError as error:
            raise CommandError(
                f"{error}; no broker answers: start the cluster, or give the address of a running broker with "
                "--bootstrap-server (heirlog up starts a new cluster on this machine)"
            ) from error
        yield client
    finally:
        client.close()
