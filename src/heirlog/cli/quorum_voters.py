"""`heirlog quorum add-controller` and `remove-controller`: change the controllers that vote, one at a time (KIP-853).

    add       the new controller is formatted and started, follows as an observer    -> a voter
    remove    by id and directory id: a replaced disk has another directory id        -> an observer, while it runs

What the active controller accepts is in `raft/voter_changes.py`. The checks here come before it, because they can name
the command to run next; one of them refuses a removal that could not be committed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.quorum import BootstrapController, connected_quorum, described
from heirlog.metadata.state import KRAFT_VERSION
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import ZERO_UUID, Uuid, uuid_from_text, uuid_text

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.metadata.config_def import StaticConfig

FETCHES_WITHIN_S: Final = 3.0
"""A voter that follows fetches every 500 ms."""
POLL_S: Final = 0.1
TIMEOUT_MS: Final = 10_000

DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, and change nothing.")]


def add_controller(
    context: typer.Context,
    config: Annotated[
        str,
        typer.Option(
            "--config",
            "-c",
            "--command-config",
            help="server.properties of the new controller: run the command where it and its log directory are.",
        ),
    ],
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    bootstrap_controller: BootstrapController = None,
) -> None:
    """Add a controller that follows the quorum to its voters. Run it on the new controller's machine."""
    from heirlog.local import properties
    from heirlog.protocol.messages import AddRaftVoterRequest

    static = properties.read_static(config)
    if not static.is_controller:
        raise CommandError(
            f"{config} does not configure a controller: process.roles has no controller. Give server.properties of "
            "the controller that is to vote"
        )
    cluster_id, directory_id = _identity(static, config)
    named = f"controller {static.node_id} with directory id {uuid_text(directory_id)}"
    listeners = static.advertised_controller_listeners
    endpoints = ",".join(f"{listener.name}://{listener.endpoint}" for listener in listeners)
    with connected_quorum(context, bootstrap_server, bootstrap_controller) as quorum:
        if quorum.cluster_id != cluster_id:
            raise CommandError(
                f"{static.metadata_log_dir} is formatted for cluster {cluster_id}, and the servers asked belong to "
                f"cluster {quorum.cluster_id}: correct the address or --config"
            )
        _, partition = described(quorum.client)
        _check_may_be_added(partition, static.node_id, directory_id, config)
        if not dry_run:
            listener = AddRaftVoterRequest.Listener
            request = AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=TIMEOUT_MS,
                voter_id=static.node_id,
                voter_directory_id=directory_id,
                listeners=[
                    listener(name=one.name, host=one.endpoint.host, port=one.endpoint.port) for one in listeners
                ],
            )
            _send(quorum.client, request, f"{named} was not added")
    print(f"{'DRY RUN of adding' if dry_run else 'Added'} {named} and endpoints: {endpoints}")


def _identity(static: StaticConfig, config: str) -> tuple[str, Uuid]:
    """Cluster id and directory id of the metadata log's directory. Raises CommandError, LocalError."""
    from heirlog.local.format import Disk
    from heirlog.storage.errors import StorageFormatError
    from heirlog.storage.identity import read_meta_properties

    path = static.metadata_log_dir
    try:
        with Disk() as disk:
            identity = read_meta_properties(disk.files, path)
    except StorageFormatError as error:
        raise CommandError(str(error)) from error
    if identity is None:
        raise CommandError(
            f"{path} is not formatted: run the command on the controller's machine. If this is a new controller, run "
            f"heirlog storage format --config {config} --cluster-id CLUSTER_ID --no-initial-controllers, and start it"
        )
    if identity.node_id != static.node_id:
        raise CommandError(f"{path} belongs to node {identity.node_id}, not to {static.node_id}: correct --config")
    return identity.cluster_id, identity.directory_id


def _refuse_static(partition: Any) -> None:
    """Raises CommandError at kraft.version 0, where the configuration names the voters and they have no directories."""
    if any(voter.replica_directory_id == ZERO_UUID for voter in partition.current_voters):
        raise CommandError(
            "the voters are those of controller.quorum.voters (kraft.version 0) and cannot be changed: first move them "
            f"into the log with heirlog features upgrade --feature {KRAFT_VERSION}=1"
        )


def _check_may_be_added(partition: Any, node_id: int, directory_id: Uuid, config: str) -> None:
    """The checks that the active controller makes too; here they name the commands to run. Raises CommandError."""
    _refuse_static(partition)
    known = next((voter for voter in partition.current_voters if voter.replica_id == node_id), None)
    if known is not None and known.replica_directory_id == directory_id:
        raise CommandError(f"controller {node_id} with directory id {uuid_text(directory_id)} is a voter already")
    if known is not None:
        old = uuid_text(known.replica_directory_id)
        raise CommandError(
            f"controller {node_id} is a voter with another directory, {old}. If that disk is lost, remove it first: "
            f"heirlog quorum remove-controller --controller-id {node_id} --controller-directory-id {old}"
        )
    observers = {(one.replica_id, bytes(one.replica_directory_id)) for one in partition.observers}
    if (node_id, bytes(directory_id)) not in observers:
        raise CommandError(
            f"controller {node_id} does not follow the quorum, and a voter must have fetched everything first: start "
            f"it with heirlog node --config {config}, and run the command again when heirlog quorum describe lists it "
            "among the observers"
        )


def remove_controller(
    context: typer.Context,
    controller_id: Annotated[int, typer.Option("--controller-id", "-i", help="Node id of the voter.")],
    controller_directory_id: Annotated[
        str,
        typer.Option("--controller-directory-id", "-d", help="Its directory id; heirlog quorum describe shows it."),
    ],
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    bootstrap_controller: BootstrapController = None,
) -> None:
    """Remove a controller from the voters, the active one too. A voter whose disk was lost is removed by its old id."""
    from heirlog.protocol.messages import RemoveRaftVoterRequest

    try:
        directory_id = uuid_from_text(controller_directory_id)
    except ValueError as error:
        raise UsageError(
            f"--controller-directory-id {controller_directory_id} is not an id of 22 characters; heirlog quorum "
            "describe shows the directoryId of each voter"
        ) from error
    named = f"KRaft controller {controller_id} with directory id {controller_directory_id}"
    with connected_quorum(context, bootstrap_server, bootstrap_controller) as quorum:
        _check_may_be_removed(quorum.client, controller_id, directory_id)
        if not dry_run:
            request = RemoveRaftVoterRequest(
                cluster_id=quorum.cluster_id, voter_id=controller_id, voter_directory_id=directory_id
            )
            _send(quorum.client, request, f"{named} was not removed")
    print(f"{'DRY RUN of removing' if dry_run else 'Removed'} {named}")


def _check_may_be_removed(client: Client, node_id: int, directory_id: Uuid) -> None:
    """Raises CommandError for a controller that is not a voter, and where too few of the others follow the leader.

    The active controller appends the removal at once, and the voters that stay must commit it. Without a majority of
    them nothing more could be committed, and no other change of the voters could mend that.
    """
    _, partition = described(client)
    _refuse_static(partition)
    voters: Sequence[Any] = partition.current_voters
    key = (node_id, bytes(directory_id))
    if key not in {(one.replica_id, bytes(one.replica_directory_id)) for one in voters}:
        listed = ", ".join(f"{one.replica_id} ({uuid_text(one.replica_directory_id)})" for one in voters)
        raise CommandError(
            f"controller {node_id} with directory id {uuid_text(directory_id)} is not a voter; the voters are {listed}"
        )
    staying = {one.replica_id for one in voters} - {node_id}
    if not staying:
        raise CommandError(f"controller {node_id} is the only voter: add another controller first")
    away = staying - _following(client, partition, len(staying) // 2 + 1, staying)
    if 2 * len(away) >= len(staying):
        raise CommandError(
            f"controller {node_id} cannot be removed now: the voters that stay could not commit it, because "
            f"{', '.join(map(str, sorted(away)))} does not fetch from the leader. Start it, or remove it first if it "
            "is lost"
        )


def _following(client: Client, partition: Any, wanted: int, voters: Set[int]) -> set[int]:
    """The leader, and those of these voters that fetch from now on; returns once they are `wanted`, or none comes."""
    began_ms = max(one.last_fetch_timestamp for one in partition.current_voters)
    deadline = time.monotonic() + FETCHES_WITHIN_S
    while True:
        found = {
            one.replica_id
            for one in partition.current_voters
            if one.replica_id == partition.leader_id or one.last_fetch_timestamp > began_ms
        } & voters
        if len(found) >= wanted or time.monotonic() > deadline:
            return found
        time.sleep(POLL_S)
        _, partition = described(client)


def _send(client: Client, request: Any, refused: str) -> None:
    """Raises CommandError."""
    answer = client.send_to_any(request)
    code = error_code(answer.error_code)
    if code is not ErrorCode.NONE:
        why = f"{refused}: {code.name}"
        raise CommandError(f"{why}: {answer.error_message}" if answer.error_message else with_next_step(why, code))
