"""What a shell offers when a person presses Tab where a name belongs: topics, groups, transactional ids, contexts.

The names come from the cluster that the command would talk to. A cluster that does not answer within a second offers
nothing: a message would appear in the middle of the line that is being typed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import typer

from heirlog.cli.connect import BOOTSTRAP_VARIABLE, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.listed_groups import listed_groups
from heirlog.local import contexts
from heirlog.local.errors import LocalError
from heirlog.protocol.errors import KafkaError

if TYPE_CHECKING:
    from heirlog.blocking import Client

WITHIN_S = 1.0
OFFERED_MAX = 1_000


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_cluster(ctx, incomplete, lambda client: client.topic_names(internal=incomplete.startswith("_")))


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_cluster(ctx, incomplete, _groups)


def transactional_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    return _of_cluster(ctx, incomplete, _transactional_ids)


def context_names(incomplete: str) -> list[str]:
    return _beginning(incomplete, contexts.names())


def _of_cluster(ctx: typer.Context, incomplete: str, names: Callable[[Client], Iterable[str]]) -> list[str]:
    servers = ctx.params.get("bootstrap_server") or os.environ.get(BOOTSTRAP_VARIABLE, "")
    try:
        with connected(servers, timeout_s=WITHIN_S) as client:
            return _beginning(incomplete, names(client))
    except (CommandError, LocalError, KafkaError, OSError):
        return []


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))[:OFFERED_MAX]


def _groups(client: Client) -> Iterator[str]:
    return (row["group"] for row in listed_groups(client))


def _transactional_ids(client: Client) -> Iterator[str]:
    from heirlog.protocol.messages import ListTransactionsRequest

    for broker in client.brokers():
        found = client.send_to_broker(broker, ListTransactionsRequest()).transaction_states
        yield from (state.transactional_id for state in found)
