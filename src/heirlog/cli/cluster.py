"""`heirlog cluster info`: one page on a cluster, for a person who sees it for the first time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.render import Json, show_json
from heirlog.cli.topics import partition_rows
from heirlog.metadata.features import metadata_version_name
from heirlog.metadata.state import METADATA_VERSION
from heirlog.protocol.errors import error_code

if TYPE_CHECKING:
    from heirlog.blocking import Client

app = typer.Typer(
    help="Show the state of the cluster: controllers, brokers, partitions without a leader.", no_args_is_help=True
)

LABELS = {
    "cluster_id": "cluster id",
    "metadata_version": "metadata.version",
    "active_controller": "active controller",
    "controllers": "controllers",
    "silent_controllers": "silent controllers",
    "brokers": "brokers",
    "fenced_brokers": "fenced brokers",
    "topics": "topics",
    "internal_topics": "internal topics",
    "partitions": "partitions",
    "replicas": "replicas",
    "without_leader": "  without a leader",
    "under_replicated": "  with replicas outside the ISR",
    "with_elr": "  with eligible leader replicas",
}


QUORUM_TIMEOUT_S = 5.0
"""Then no controller is active, and the brokers' part is shown without the quorum's."""


@app.command("info")
def info(bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP, as_json: Json = False) -> None:
    """Show the cluster id, its nodes, and how many partitions it has and in which state."""
    with connected(bootstrap_server) as client:
        found = _found(client)
    if as_json:
        show_json(found)
        return
    width = max(map(len, LABELS.values()))
    for key, label in LABELS.items():
        value = found[key]
        print(f"{label.ljust(width)}  {_text(value)}")


def _text(value: Any) -> str:
    if value is None:
        return "none answers (heirlog quorum describe says more)"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _found(client: Client) -> dict[str, Any]:
    """Raises CommandError, KafkaError, OSError."""
    from heirlog.cli.features import described_features
    from heirlog.cli.quorum import described as described_quorum
    from heirlog.cli.quorum import silent_voters
    from heirlog.protocol.messages import DescribeClusterRequest, MetadataRequest

    cluster = client.send_to_any(DescribeClusterRequest(include_fenced_brokers=True))
    if cluster.error_code:
        failure = error_code(cluster.error_code)
        raise CommandError(with_next_step(f"the cluster cannot be described: {failure.name}", failure))
    try:
        _, quorum = described_quorum(client, QUORUM_TIMEOUT_S)
    except TimeoutError:  # what brokers know can be shown all the same
        quorum = None
    topics = client.send_to_any(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
    partitions = list(partition_rows(client, []))
    levels = {row["feature"]: row["level"] for row in described_features(client)}
    return {
        "cluster_id": cluster.cluster_id,
        "metadata_version": metadata_version_name(levels[METADATA_VERSION]),
        "active_controller": None if quorum is None else quorum.leader_id,
        "controllers": None if quorum is None else sorted(voter.replica_id for voter in quorum.current_voters),
        "silent_controllers": None if quorum is None else silent_voters(quorum),
        "brokers": sorted(broker.broker_id for broker in cluster.brokers if not broker.is_fenced),
        "fenced_brokers": sorted(broker.broker_id for broker in cluster.brokers if broker.is_fenced),
        "topics": sum(not topic.is_internal for topic in topics),
        "internal_topics": sum(topic.is_internal for topic in topics),
        "partitions": len(partitions),
        "replicas": sum(len(row["replicas"]) for row in partitions),
        "without_leader": sum(row["leader"] is None for row in partitions),
        "under_replicated": sum(len(row["isr"]) < len(row["replicas"]) for row in partitions),
        "with_elr": sum(bool(row["elr"]) for row in partitions),
    }
