"""`heirlog transactions list|describe|force-terminate`: transactional ids, in the words of kafka-transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli import complete
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.names import chosen_parts, given_once
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, NamesOnly, show_names, show_rows
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import CoordinatorType

if TYPE_CHECKING:
    from heirlog.blocking import Client

app = typer.Typer(help="Show transactions, and abort those of a producer that does not return.", no_args_is_help=True)

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Kafka's names."""
ENDED = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
"""States without an open transaction."""
FENCING_TIMEOUT_MS = 30_000
"""transaction.timeout.ms of the id after it was fenced, until its next producer names another one."""
IdArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="ID", help="The transactional id.", show_default=False, autocompletion=complete.transactional_ids
    ),
]
Id = Annotated[str | None, typer.Option("--transactional-id", help="The same in Kafka's words.")]


def one_id(argument: str | None, option: str | None) -> str:
    """Raises UsageError unless exactly one names the id."""
    return given_once("transactional id", "ID", argument, "--transactional-id", option)


@app.command("list")
def list_transactions(
    state: Annotated[str | None, typer.Option(help="Only ids in these states, separated by commas.")] = None,
    duration_filter: Annotated[
        int, typer.Option("--duration-filter", help="Only transactions that are open for more than so many ms.")
    ] = -1,
    transactional_id_pattern: Annotated[
        str | None, typer.Option("--transactional-id-pattern", help="Only ids that match this regular expression.")
    ] = None,
    names_only: NamesOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List the transactional ids of all coordinators."""
    from heirlog.protocol.messages import ListTransactionsRequest

    request = ListTransactionsRequest(
        state_filters=chosen_parts("--state", state, STATES),
        duration_filter=duration_filter,
        transactional_id_pattern=transactional_id_pattern,
    )
    rows = []
    with connected(bootstrap_server) as client:
        for broker in sorted(client.brokers()):
            answer = client.send_to_broker(broker, request)
            _check(answer.error_code, f"broker {broker} cannot list its transactions")
            rows += [
                {
                    "transactional_id": found.transactional_id,
                    "coordinator": broker,
                    "producer_id": found.producer_id,
                    "state": found.transaction_state,
                }
                for found in answer.transaction_states
            ]
    rows.sort(key=lambda row: str(row["transactional_id"]))
    if names_only:
        show_names((row["transactional_id"] for row in rows), as_json)
        return
    columns = {
        "transactional_id": "TransactionalId",
        "coordinator": "Coordinator",
        "producer_id": "ProducerId",
        "state": "TransactionState",
    }
    show_rows(columns, rows, as_json)


@app.command("describe")
def describe(
    transactional_id: IdArgument = None,
    named_id: Id = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show the state, the producer and the partitions of a transactional id."""
    transactional_id = one_id(transactional_id, named_id)
    with connected(bootstrap_server) as client:
        found = _described(client, transactional_id)
    columns = {
        "transactional_id": "TransactionalId",
        "producer_id": "ProducerId",
        "producer_epoch": "ProducerEpoch",
        "state": "TransactionState",
        "timeout_ms": "TransactionTimeoutMs",
        "start_ms": "CurrentTransactionStartTimeMs",
        "duration_ms": "TransactionDurationMs",
        "partitions": "TopicPartitions",
    }
    show_rows(columns, [_row(found)], as_json)


def _row(found: Any) -> dict[str, Any]:
    has_start = found.transaction_start_time_ms >= 0
    is_open = has_start and found.transaction_state not in ENDED
    return {
        "transactional_id": found.transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "state": found.transaction_state,
        "timeout_ms": found.transaction_timeout_ms,
        "start_ms": found.transaction_start_time_ms if has_start else None,
        "duration_ms": int(time.time() * 1000) - found.transaction_start_time_ms if is_open else None,
        "partitions": ",".join(f"{topic.topic}-{index}" for topic in found.topics for index in topic.partitions),
    }


def _described(client: Client, transactional_id: str) -> Any:
    """Raises CommandError for an id that does not exist."""
    from heirlog.protocol.messages import DescribeTransactionsRequest

    (found,) = client.send_to_coordinator(
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        error_code=lambda answer: int(answer.transaction_states[0].error_code),
        key_type=CoordinatorType.TRANSACTION,
    ).transaction_states
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise CommandError(
            f"transactional id {transactional_id} does not exist; heirlog transactions list shows all ids"
        )
    _check(found.error_code, f"cannot describe transactional id {transactional_id}")
    return found


@app.command("force-terminate")
def force_terminate(
    transactional_id: IdArgument = None,
    named_id: Id = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Abort the open transaction of an id and fence its producer, which cannot commit any more."""
    from heirlog.protocol.messages import InitProducerIdRequest

    transactional_id = one_id(transactional_id, named_id)
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)
    with connected(bootstrap_server) as client:
        # asking for an unknown id would create it
        _described(client, transactional_id)
        answer = client.send_to_coordinator(
            transactional_id, request, error_code=lambda got: int(got.error_code), key_type=CoordinatorType.TRANSACTION
        )
    _check(answer.error_code, f"cannot fence the producer of {transactional_id}")
    print(f"{transactional_id}: its transaction is aborted, and its producer is fenced.")


def _check(code: int, what: str) -> None:
    """Raises CommandError."""
    if code:
        failure = error_code(code)
        raise CommandError(with_next_step(f"{what}: {failure.name}", failure))
