"""Which cluster a command talks to: `--bootstrap-server`, else $HEIRLOG_BOOTSTRAP, else localhost:9092."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from heirlog.blocking.cluster import BlockingClient

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


@contextmanager
def connected(bootstrap_servers: str) -> Iterator[BlockingClient]:
    """A client that is closed afterwards. Its errors (OSError, KafkaError) are sentences already."""
    from heirlog.blocking.cluster import BlockingClient

    client = BlockingClient(bootstrap_servers)
    try:
        yield client
    finally:
        client.close()
