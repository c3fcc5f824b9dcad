"""`heirlog topics create|list|describe|alter|delete`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.connect import DEFAULT_BOOTSTRAP, BootstrapServer, connected
from heirlog.cli.deprecated import warn_of_deprecated
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.option_groups import grouped
from heirlog.cli.render import Json, show_rows
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import NO_LEADER, uuid_text

if TYPE_CHECKING:
    from heirlog.blocking import Client
    from heirlog.cli.partition_filters import Filter

app = typer.Typer(help="Create, list, describe, grow and delete topics.", no_args_is_help=True)

TIMEOUT_MS = 30_000
BROKER_DEFAULT = -1

Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", help="Topic names.")]
NamedTopics = Annotated[list[str] | None, typer.Option("--topic", help="A topic name; may be repeated.")]


@app.command("create")
def create(
    names: Names = None,
    topic: NamedTopics = None,
    partitions: Annotated[int | None, typer.Option(min=1, help="Default: the cluster's num.partitions.")] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Default: the cluster's default.replication.factor.")
    ] = None,
    config: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Topic config; repeatable.")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Create topics."""
    from heirlog.protocol.messages import CreateTopicsRequest

    configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in map(_pair, config or ())
    ]
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions or BROKER_DEFAULT,
                replication_factor=replication_factor or BROKER_DEFAULT,
                configs=configs,
            )
            for name in _wanted(names, topic)
        ],
        timeout_ms=TIMEOUT_MS,
    )
    with connected(bootstrap_server) as client:
        response = client.send_to_any(request)
    warn_of_deprecated(entry.name for entry in configs)
    columns = {
        "topic": "Topic",
        "topic_id": "TopicId",
        "partitions": "PartitionCount",
        "replication_factor": "ReplicationFactor",
    }
    created = [
        {
            "topic": result.name,
            "topic_id": uuid_text(result.topic_id),
            "partitions": result.num_partitions,
            "replication_factor": result.replication_factor,
        }
        for result in response.topics
        if not result.error_code
    ]
    if created:
        show_rows(columns, created, as_json)
    _raise_first("create", ((result.name, result.error_code, result.error_message) for result in response.topics))


@app.command("list")
def list_topics(bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP, as_json: Json = False) -> None:
    """List all topics."""
    from heirlog.protocol.messages import MetadataRequest

    with connected(bootstrap_server) as client:
        response = client.send_to_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    rows = [
        {
            "topic": topic.name,
            "topic_id": uuid_text(topic.topic_id),
            "partitions": len(topic.partitions),
            "internal": topic.is_internal,
        }
        for topic in sorted(response.topics, key=lambda topic: topic.name or "")
    ]
    show_rows({"topic": "Topic", "topic_id": "TopicId", "partitions": "PartitionCount"}, rows, as_json)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which partitions to show: all, or those that one of the options chooses."""

    under_replicated: Annotated[
        bool,
        typer.Option("--under-replicated-partitions", help="Only partitions whose ISR is smaller than their replicas."),
    ] = False
    unavailable: Annotated[
        bool, typer.Option("--unavailable-partitions", help="Only partitions without a live leader.")
    ] = False
    under_min_isr: Annotated[
        bool, typer.Option("--under-min-isr-partitions", help="Only partitions below min ISR, which refuse acks=all.")
    ] = False
    at_min_isr: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions", help="Only partitions at min ISR: one more failure, and they refuse acks=all."
        ),
    ] = False

    @property
    def chosen(self) -> Filter | None:
        """Raises UsageError for more than one."""
        from heirlog.cli.partition_filters import Filter

        chosen = [
            each
            for each, is_wanted in (
                (Filter.UNDER_REPLICATED, self.under_replicated),
                (Filter.UNAVAILABLE, self.unavailable),
                (Filter.UNDER_MIN_ISR, self.under_min_isr),
                (Filter.AT_MIN_ISR, self.at_min_isr),
            )
            if is_wanted
        ]
        if len(chosen) > 1:
            raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
        return chosen[0] if chosen else None


@app.command("describe")
@grouped
def describe(
    *,
    names: Names = None,
    topic: NamedTopics = None,
    filters: Filters,
    exclude_internal: Annotated[bool, typer.Option("--exclude-internal", help="Exclude internal topics.")] = False,
    partition_size_limit_per_response: Annotated[
        int | None, typer.Option(min=1, help="How many partitions each request asks for.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show leader, replicas, ISR, ELR and last known ELR of every partition (of all topics, if none is named)."""
    from heirlog.cli.partition_filters import filtered

    chosen = filters.chosen
    with connected(bootstrap_server) as client:
        rows = list(
            partition_rows(
                client,
                [*(names or ()), *(topic or ())],
                page_partitions=partition_size_limit_per_response,
                exclude_internal=exclude_internal,
            )
        )
        if chosen is not None:
            rows = filtered(client, chosen, rows)
    columns = {
        "topic": "Topic",
        "partition": "Partition",
        "leader": "Leader",
        "leader_epoch": "LeaderEpoch",
        "replicas": "Replicas",
        "isr": "Isr",
        "elr": "Elr",
        "last_known_elr": "LastKnownElr",
    }
    show_rows(columns, rows, as_json)


def partition_rows(
    client: Client,
    names: Iterable[str],
    *,
    page_partitions: int | None = None,
    exclude_internal: bool = False,
) -> Iterator[dict[str, Any]]:
    """One row per partition; no names: all topics. Raises CommandError."""
    from heirlog.client.admin import describe_topic_partitions

    for topic in client.run(describe_topic_partitions(list(names) or None, page_partitions)):
        _raise_first("describe", [(topic.name, topic.error_code, None)])
        if exclude_internal and topic.is_internal:
            continue
        for partition in topic.partitions:
            yield {
                "topic": topic.name,
                "partition": partition.partition_index,
                "leader": None if partition.leader_id == NO_LEADER else partition.leader_id,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replica_nodes),
                "isr": list(partition.isr_nodes),
                "elr": list(partition.eligible_leader_replicas or ()),
                "last_known_elr": list(partition.last_known_elr or ()),
            }


@app.command("alter")
def alter(
    partitions: Annotated[
        int, typer.Option(min=1, help="The new number of partitions. It must be larger than the present number.")
    ],
    names: Names = None,
    topic: NamedTopics = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Add partitions to topics; new records may go to other partitions than earlier ones with the same key."""
    from heirlog.protocol.messages import CreatePartitionsRequest

    wanted = [
        CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        for name in _wanted(names, topic)
    ]
    with connected(bootstrap_server) as client:
        response = client.send_to_any(CreatePartitionsRequest(topics=wanted, timeout_ms=TIMEOUT_MS))
    _raise_first("alter", ((result.name, result.error_code, result.error_message) for result in response.results))


@app.command("delete")
def delete(
    names: Names = None,
    topic: NamedTopics = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Delete topics with all their records."""
    from heirlog.protocol.messages import DeleteTopicsRequest

    wanted = _wanted(names, topic)
    request = DeleteTopicsRequest(
        topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in wanted], timeout_ms=TIMEOUT_MS
    )
    with connected(bootstrap_server) as client:
        response = client.send_to_any(request)
    deleted = [
        {"topic": result.name, "topic_id": uuid_text(result.topic_id)}
        for result in response.responses
        if not result.error_code
    ]
    if deleted:
        show_rows({"topic": "Topic", "topic_id": "TopicId"}, deleted, as_json)
    _raise_first("delete", ((result.name, result.error_code, result.error_message) for result in response.responses))


def _wanted(names: list[str] | None, topic: list[str] | None) -> list[str]:
    wanted = [*(names or ()), *(topic or ())]
    if not wanted:
        raise UsageError("name at least one topic, as TOPIC or --topic TOPIC")
    return wanted


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--config {text} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _raise_first(verb: str, results: Iterable[tuple[str | None, int, str | None]]) -> None:
    """One sentence for the first topic that failed."""
    for name, code, message in results:
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandError(with_next_step(f"cannot {verb} topic {name}: it does not exist", error_code(code)))
        if code:
            reason = f"{error_code(code).name}, {message}" if message else error_code(code).name
            raise CommandError(with_next_step(f"cannot {verb} topic {name}: {reason}", error_code(code)))
