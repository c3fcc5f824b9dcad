"""`heirlog quorum`: the controllers that vote, and how far each node has followed the metadata log.

As in kafka-metadata-quorum. The leader of the quorum is the active controller; only it knows the others' positions.
Changes of the voters are in `quorum_voters.py`.

    --bootstrap-server        any broker, which forwards the request to the active controller
    --bootstrap-controller    any controller: it names the active one, which gets the request. No broker is necessary
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected, connected_to_active_controller
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import METADATA_TOPIC, ZERO_UUID, uuid_text

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.protocol.messages import DescribeQuorumResponse

app = typer.Typer(no_args_is_help=True, help="Show and change the quorum of the controllers.")

BootstrapController = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        help="Instead of --bootstrap-server: host:port of a controller, several separated by commas.",
    ),
]


@app.command("describe")
def describe(
    context: typer.Context,
    status: Annotated[
        bool, typer.Option("--status", help="The leader, the voters and the observers (default).")
    ] = False,
    replication: Annotated[
        bool, typer.Option("--replication", help="A row for each node: how far its copy of the metadata log reaches.")
    ] = False,
    human_readable: Annotated[
        bool, typer.Option("--human-readable", help="With --replication: how long ago each time was.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    bootstrap_controller: BootstrapController = None,
    as_json: Json = False,
) -> None:
    """Show the leader, the voters and the observers of the metadata quorum."""
    if status and replication:
        raise UsageError("--status and --replication exclude each other")
    if human_readable and (as_json or not replication):
        raise UsageError("--human-readable goes with --replication, and not with --json")
    with connected_quorum(context, bootstrap_server, bootstrap_controller) as quorum:
        answer, partition = described(quorum.client)
    if replication:
        rows = _rows(partition)
        show_rows(COLUMNS, _with_ages(rows) if human_readable else rows, as_json)
        return
    found = _status(quorum.cluster_id, answer, partition)
    if as_json:
        print(json.dumps(found))
        return
    silent = silent_voters(partition)
    for name, value in found.items():
        title = "".join(word.capitalize() for word in name.split("_")) + ":"
        for node in value if isinstance(value, list) and value else [value]:
            is_silent = name == "current_voters" and node["id"] in silent
            shown = json.dumps(node) if isinstance(node, dict | list) else node
            print(f"{title:<24}{shown}{SILENT if is_silent else ''}")
            title = ""


COLUMNS = {
    "node_id": "NodeId",
    "directory_id": "DirectoryId",
    "log_end_offset": "LogEndOffset",
    "lag": "Lag",
    "last_fetch_timestamp": "LastFetchTimestamp",
    "last_caught_up_timestamp": "LastCaughtUpTimestamp",
    "status": "Status",
}


SILENT_MS = 5000
"""A controller that runs fetches several times a second, and becomes a candidate after two seconds without a leader."""
SILENT = f" (has not fetched for {SILENT_MS // 1000} s or longer)"


class QuorumClient(NamedTuple):
    client: Client
    """Its `send_to_any` reaches the active controller, through a broker or directly."""
    cluster_id: str | None


@contextmanager
def connected_quorum(
    context: typer.Context, bootstrap_server: str, bootstrap_controller: str | None
) -> Iterator[QuorumClient]:
    """Raises CommandError, UsageError."""
    # $HEIRLOG_BOOTSTRAP is no choice of this command line
    source = context.get_parameter_source("bootstrap_server")
    if bootstrap_controller is not None and source is not None and source.name == "COMMANDLINE":
        raise UsageError("--bootstrap-server and --bootstrap-controller exclude each other: give one of them")
    if bootstrap_controller is None:
        with connected(bootstrap_server) as client:
            yield QuorumClient(client, client.metadata([]).cluster_id)
    else:
        with connected_to_active_controller(bootstrap_controller) as (client, cluster_id):
            yield QuorumClient(client, cluster_id)


def described(
    client: Client, timeout_s: float | None = None
) -> tuple[DescribeQuorumResponse, DescribeQuorumResponse.PartitionData]:
    """timeout_s: None: the client's. Raises CommandError, TimeoutError where no controller is active."""
    from heirlog.protocol.messages import DescribeQuorumRequest

    nested = DescribeQuorumRequest
    asked = nested.TopicData(topic_name=METADATA_TOPIC, partitions=[nested.PartitionData(partition_index=0)])
    answer = client.send_to_any(nested(topics=[asked]), timeout_s=timeout_s)
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    code = error_code(answer.error_code or (partitions[0].error_code if partitions else 0))
    if code is not ErrorCode.NONE or not partitions:
        raise CommandError(with_next_step(f"the metadata quorum cannot be described: {code.name}", code))
    return answer, partitions[0]


def _status(cluster_id: str | None, answer: DescribeQuorumResponse, partition: Any) -> dict[str, Any]:
    endpoints = {
        node.node_id: [f"{listener.name}://{listener.host}:{listener.port}" for listener in node.listeners]
        for node in answer.nodes
    }
    leader = _leader(partition)
    followers = [voter for voter in partition.current_voters if voter is not leader]
    end_offset = _end_offset(partition)
    lags = [end_offset - max(voter.log_end_offset, 0) for voter in followers]
    newest = max((voter.last_caught_up_timestamp for voter in partition.current_voters), default=-1)
    behind = [newest - voter.last_caught_up_timestamp for voter in followers]
    unknown = any(voter.last_caught_up_timestamp < 0 for voter in followers)
    return {
        "cluster_id": cluster_id,
        "leader_id": partition.leader_id,
        "leader_epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "max_follower_lag": max(lags, default=0),
        "max_follower_lag_time_ms": -1 if unknown else max([0, *behind]),
        "current_voters": [
            {**_node(voter), "endpoints": endpoints.get(voter.replica_id, [])} for voter in partition.current_voters
        ],
        "current_observers": [_node(observer) for observer in partition.observers],
    }


def silent_voters(partition: Any) -> list[int]:
    """Controllers that vote and that the leader has not heard of, by id."""
    now_ms = max((voter.last_fetch_timestamp for voter in partition.current_voters), default=-1)
    return sorted(
        voter.replica_id for voter in partition.current_voters if now_ms - voter.last_fetch_timestamp >= SILENT_MS
    )


def _leader(partition: Any) -> Any | None:
    """None while the leader commits its own removal: it leads and is not a voter."""
    return next((voter for voter in partition.current_voters if voter.replica_id == partition.leader_id), None)


def _end_offset(partition: Any) -> int:
    """The leader's log end; of a leader that is not a voter, what is known of it."""
    leader = _leader(partition)
    known = [leader] if leader is not None else partition.current_voters
    ends: list[int] = [voter.log_end_offset for voter in known]
    return max(ends, default=0)


def _node(replica: Any) -> dict[str, Any]:
    directory = replica.replica_directory_id
    return {"id": replica.replica_id, "directoryId": None if directory == ZERO_UUID else uuid_text(directory)}


def _rows(partition: Any) -> list[dict[str, Any]]:
    leader, end_offset = _leader(partition), _end_offset(partition)
    rows = []
    for kind, replicas in (("Follower", partition.current_voters), ("Observer", partition.observers)):
        for replica in replicas:
            node = _node(replica)
            rows.append(
                {
                    "node_id": node["id"],
                    "directory_id": node["directoryId"],
                    "log_end_offset": replica.log_end_offset,
                    "lag": end_offset - replica.log_end_offset,
                    "last_fetch_timestamp": replica.last_fetch_timestamp,
                    "last_caught_up_timestamp": replica.last_caught_up_timestamp,
                    "status": "Leader" if replica is leader else kind,
                }
            )
    return sorted(rows, key=lambda row: ("Leader", "Follower", "Observer").index(row["status"]))


def _with_ages(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """With `120 ms ago`, as in Kafka's tool, in the place of a time; None where the leader knows none."""
    now_ms = time.time() * 1000
    times = ("last_fetch_timestamp", "last_caught_up_timestamp")

    def age(at_ms: int) -> str | None:
        return None if at_ms < 0 else f"{max(0, round(now_ms - at_ms))} ms ago"

    return [{**row, **{name: age(row[name]) for name in times}} for row in rows]
