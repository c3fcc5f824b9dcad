"""`heirlog broker list|unregister`: who is registered, and forgetting a broker that is not coming back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.cleared import counted, warn, warn_of_cleared_elr
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.names import given_once
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, NamesOnly, confirm, show_names, show_rows
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

ACTIVE = "active"
app = typer.Typer(help="List brokers, and unregister brokers that will not return.", no_args_is_help=True)


@app.command("list")
def list_brokers(
    names_only: NamesOnly = False, bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP, as_json: Json = False
) -> None:
    """List the registered brokers, including fenced brokers, which serve no requests."""
    with connected(bootstrap_server) as client:
        rows = registered(client)
    if names_only:
        show_names((row["broker"] for row in rows), as_json)
        return
    columns = {"broker": "Broker", "host": "Host", "port": "Port", "rack": "Rack", "state": "State"}
    show_rows(columns, rows, as_json)


def registered(client: Client) -> list[dict[str, Any]]:
    """A row for each broker, by id; `state` is active or fenced. Raises CommandError."""
    from heirlog.protocol.messages import DescribeClusterRequest

    answer = client.send_to_any(DescribeClusterRequest(include_fenced_brokers=True))
    if answer.error_code:
        failure = error_code(answer.error_code)
        raise CommandError(with_next_step(f"the cluster cannot be described: {failure.name}", failure))
    return [
        {
            "broker": broker.broker_id,
            "host": broker.host,
            "port": broker.port,
            "rack": broker.rack,
            "state": "fenced" if broker.is_fenced else ACTIVE,
        }
        for broker in sorted(answer.brokers, key=lambda broker: broker.broker_id)
    ]


@app.command("unregister")
def unregister(
    broker: Annotated[int | None, typer.Argument(metavar="ID", min=0, help="The broker's node id.")] = None,
    named_id: Annotated[int | None, typer.Option("--id", min=0, help="The same in Kafka's words.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", "--force", help="Do not ask for confirmation, which a running broker needs.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Unregister a broker: it leaves every ISR, ELR and last known ELR. Its replicas stay assigned until they are
    moved. For a broker that is running the command asks first."""
    from heirlog.client.admin import to_controller
    from heirlog.protocol.messages import UnregisterBrokerRequest

    broker_id = given_once("broker", "ID", broker, "--id", named_id)
    with connected(bootstrap_server) as client:
        if any(row["broker"] == broker_id and row["state"] == ACTIVE for row in registered(client)):
            warn(f"broker {broker_id} is running and would register again: stop it first")
            if not yes:
                confirm(f"Unregister broker {broker_id} all the same?")
        warn_of_cleared_elr(client, f"unregistering broker {broker_id}", only=[broker_id])
        left = _replicas_on(client, broker_id)
        answer = client.run(to_controller(UnregisterBrokerRequest(broker_id=broker_id), lambda got: [got.error_code]))
    if answer.error_code:
        failure = error_code(answer.error_code)
        reason = f"{failure.name}, {answer.error_message or ''}".rstrip(", ")
        raise CommandError(with_next_step(f"cannot unregister broker {broker_id}: {reason}", failure))
    print(f"Broker {broker_id} is no longer registered.")
    if left:
        warn(
            f"{counted(left)} still have a replica on broker {broker_id}, and are under-replicated until they "
            "are moved: heirlog reassign (the guide three-machines has the steps)"
        )


def _replicas_on(client: Client, broker_id: int) -> list[str]:
    from heirlog.client.admin import describe_topic_partitions

    return [
        f"{topic.name}-{partition.partition_index}"
        for topic in client.run(describe_topic_partitions(None))
        for partition in topic.partitions
        if broker_id in partition.replica_nodes
    ]
