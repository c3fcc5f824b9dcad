"""`heirlog topics create|list|describe|alter|delete`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heirlog.cli.capped_min_isr import warn_of_capped
from heirlog.cli.connect import DEFAULT_BOOTSTRAP, REQUEST_TIMEOUT_S, BootstrapServer, connected
from heirlog.cli.deprecated import warn_of_deprecated
from heirlog.cli.errors import CommandError, UsageError
from heirlog.cli.names import Include, NamedTopics, Names, at_least_one, matching, named, some_matching
from heirlog.cli.next_steps import with_next_step
from heirlog.cli.option_groups import grouped
from heirlog.cli.partition_filters import MIN_ISR, Filter, Filters, filtered
from heirlog.cli.render import Json, NamesOnly, Yes, confirm, show_names, show_rows
from heirlog.cli.watch import WITHIN_S, Interval, Watch, Watching
from heirlog.local import properties
from heirlog.protocol.errors import ErrorCode, error_code
from heirlog.protocol.types import NO_LEADER, uuid_text

if TYPE_CHECKING:
    from heirlog.blocking import Client

app = typer.Typer(help="Create, list, describe, grow and delete topics.", no_args_is_help=True)

TIMEOUT_MS = 30_000
BROKER_DEFAULT = -1

ReplicaAssignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="ID:ID,ID:ID,...",
        help="The brokers of each partition's replicas, the preferred leader first: 1:2,2:3 is for two partitions.",
    ),
]
ExcludeInternal = Annotated[bool, typer.Option("--exclude-internal", help="Exclude internal topics.")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="Topics that do not exist are skipped.")]


@app.command("create")
def create(
    names: Names = None,
    topic: NamedTopics = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", min=1, help="Default: the cluster's num.partitions.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, help="Default: the cluster's default.replication.factor."),
    ] = None,
    replica_assignment: ReplicaAssignment = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", "-c", metavar="NAME=VALUE", help="Topic config; repeatable.")
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(help="A file of lines NAME=VALUE, as `heirlog configs describe --properties` prints them."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave topics that exist as they are; that is no failure.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Create topics."""
    from heirlog.protocol.messages import CreateTopicsRequest

    if replica_assignment is not None and (partitions or replication_factor):
        raise UsageError("--replica-assignment says how many partitions and replicas there are; leave the others out")
    assignments = [
        CreateTopicsRequest.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
        for number, brokers in enumerate(_assignments(replica_assignment))
    ]
    given = ({} if config_file is None else properties.read(config_file)) | dict(map(_pair, config or ()))
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=name, value=value) for name, value in given.items()]
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions or BROKER_DEFAULT,
                replication_factor=replication_factor or BROKER_DEFAULT,
                assignments=assignments,
                configs=configs,
            )
            for name in at_least_one(names, topic)
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
    if created or as_json:
        show_rows(columns, created, as_json)
    for row in created:
        warn_of_capped(row["topic"], given.get(MIN_ISR), row["replication_factor"])
    _raise_first(
        "create",
        ((result.name, result.error_code, result.error_message) for result in response.topics),
        passing=ErrorCode.TOPIC_ALREADY_EXISTS if if_not_exists else None,
    )


@app.command("list")
def list_topics(
    include: Include = None,
    exclude_internal: ExcludeInternal = False,
    names_only: NamesOnly = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List topics. `--names` is for scripts: `for topic in $(heirlog topics list --names)`."""
    from heirlog.protocol.messages import MetadataRequest

    with connected(bootstrap_server) as client:
        response = client.send_to_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    shown = set(matching((topic.name or "" for topic in response.topics), include))
    rows = [
        {
            "topic": topic.name,
            "topic_id": uuid_text(topic.topic_id),
            "partitions": len(topic.partitions),
            "internal": topic.is_internal,
        }
        for topic in sorted(response.topics, key=lambda topic: topic.name or "")
        if topic.name in shown and not (exclude_internal and topic.is_internal)
    ]
    if names_only:
        show_names((row["topic"] for row in rows), as_json)
        return
    show_rows({"topic": "Topic", "topic_id": "TopicId", "partitions": "PartitionCount"}, rows, as_json)


@app.command("describe")
@grouped
def describe(
    *,
    names: Names = None,
    topic: NamedTopics = None,
    include: Include = None,
    filters: Filters,
    exclude_internal: ExcludeInternal = False,
    if_exists: IfExists = False,
    partition_size_limit_per_response: Annotated[
        int | None, typer.Option(min=1, help="How many partitions each request asks for.")
    ] = None,
    watching: Watching = False,
    interval: Interval = 1.0,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show leader, replicas, ISR, ELR and last known ELR of every partition (of all topics, if none is named).

    Above the partitions, a line for each topic has what is configured for it; not with a filter or --watch.
    """
    from heirlog.cli import topic_summaries

    chosen = filters.chosen
    wanted = _named_or_included(names, topic, include)
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
    with connected(bootstrap_server, timeout_s=WITHIN_S if watching else REQUEST_TIMEOUT_S) as client:

        def look_at_all(if_exists: bool) -> list[dict[str, Any]]:
            names = wanted if include is None else some_matching(client.topic_names(internal=True), include)
            rows = partition_rows(
                client,
                names,
                page_partitions=partition_size_limit_per_response,
                exclude_internal=exclude_internal,
                if_exists=if_exists,
            )
            return list(rows)

        def look(if_exists: bool) -> list[dict[str, Any]]:
            return _chosen(client, chosen, look_at_all(if_exists))

        if watching:
            # what is deleted while it is watched is no mistake in the command line
            looks = chain([if_exists], repeat(True))
            ends = f"{', '.join(wanted)}: deleted, so nothing is left to watch" if wanted and chosen is None else None
            Watch(columns, ("topic", "partition"), interval, ends).run(lambda: look(next(looks)), as_json)
        rows = look_at_all(if_exists)
        shown = _chosen(client, chosen, rows)
        wants_summaries = shown and (as_json or chosen is None)
        of_topics = topic_summaries.summaries(client, rows) if wants_summaries else {}
    if as_json:
        show_rows(columns, list(topic_summaries.with_summaries(shown, of_topics)), as_json)
        return
    if of_topics:
        topic_summaries.show(of_topics)
        print()
    show_rows(columns, shown, as_json)


def _chosen(client: Client, chosen: Filter | None, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return rows if chosen is None else filtered(client, chosen, rows)


def partition_rows(
    client: Client,
    names: Iterable[str],
    *,
    page_partitions: int | None = None,
    exclude_internal: bool = False,
    if_exists: bool = False,
) -> Iterator[dict[str, Any]]:
    """One row per partition; no names: all topics. Raises CommandError, with if_exists not for a topic that is not
    there."""
    from heirlog.client.admin import describe_topic_partitions

    for topic in client.run(describe_topic_partitions(list(names) or None, page_partitions)):
        _raise_first("describe", [(topic.name, topic.error_code, None)], passing=_absent(if_exists))
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
        int,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            help="The new number of partitions. It must be larger than the present number.",
        ),
    ],
    names: Names = None,
    topic: NamedTopics = None,
    replica_assignment: ReplicaAssignment = None,
    if_exists: IfExists = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
) -> None:
    """Add partitions to topics. New records may go to other partitions than earlier ones with the same key.

    --replica-assignment names the brokers of all partitions, as in Kafka's tool; those of the present partitions
    are not changed by it (heirlog reassign does that).
    """
    from heirlog.protocol.messages import CreatePartitionsRequest

    wanted = at_least_one(names, topic)
    assigned = _assignments(replica_assignment)
    if assigned and len(assigned) != partitions:
        raise UsageError(f"--replica-assignment is for {len(assigned)} partitions, and --partitions for {partitions}")
    with connected(bootstrap_server) as client:
        present = {found.name: len(found.partitions) for found in client.metadata(wanted).topics} if assigned else {}
        changes = [
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name,
                count=partitions,
                assignments=[
                    CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=brokers)
                    for brokers in assigned[present[name] :]
                ]
                if assigned
                else None,
            )
            for name in wanted
        ]
        response = client.send_to_any(CreatePartitionsRequest(topics=changes, timeout_ms=TIMEOUT_MS))
    for result in response.results:
        if not result.error_code:
            print(f"Topic {result.name} has {partitions} partitions.")
    _raise_first(
        "alter",
        ((result.name, result.error_code, result.error_message) for result in response.results),
        passing=_absent(if_exists),
    )


@app.command("delete")
def delete(
    names: Names = None,
    topic: NamedTopics = None,
    include: Include = None,
    yes: Yes = False,
    if_exists: IfExists = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Delete topics with all their records. --include leaves internal topics out, and asks before it deletes.

    It also asks before it deletes an internal topic that is named.
    """
    from heirlog.metadata.topic_name import INTERNAL_TOPICS
    from heirlog.protocol.messages import DeleteTopicsRequest

    wanted = at_least_one(names, topic) if include is None else _named_or_included(names, topic, include)
    internal = ", ".join(name for name in wanted if name in INTERNAL_TOPICS)
    if internal and not yes:
        confirm(
            f"Delete {internal}? Groups lose the offsets, and transactional ids the state, that the cluster stores "
            "there; consumers may wait for ever for the end of transactions that are open now."
        )
    with connected(bootstrap_server) as client:
        if include is not None:
            wanted = some_matching(client.topic_names(), include)
            if not yes:
                plural = "s" if len(wanted) != 1 else ""
                confirm(f"Delete {len(wanted)} topic{plural} with all records ({', '.join(wanted)})?")
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name) for name in wanted], timeout_ms=TIMEOUT_MS
        )
        response = client.send_to_any(request)
    deleted = [
        {"topic": result.name, "topic_id": uuid_text(result.topic_id)}
        for result in response.responses
        if not result.error_code
    ]
    if deleted or as_json:
        show_rows({"topic": "Topic", "topic_id": "TopicId"}, deleted, as_json)
    _raise_first(
        "delete",
        ((result.name, result.error_code, result.error_message) for result in response.responses),
        passing=_absent(if_exists),
    )


def _named_or_included(names: list[str] | None, topic: list[str] | None, include: str | None) -> list[str]:
    """Raises UsageError for both."""
    if include is not None and named(names, topic):
        raise UsageError("--include goes without the names of topics")
    return named(names, topic)


def _assignments(text: str | None) -> list[list[int]]:
    """`1:2,2:3`, as kafka-topics reads it. Raises UsageError."""
    partitions = [part.split(":") for part in text.split(",")] if text is not None else []
    if not all(broker.strip().isdecimal() for partition in partitions for broker in partition):
        raise UsageError(f"--replica-assignment {text} is not of the form ID:ID,ID:ID")
    return [[int(broker) for broker in partition] for partition in partitions]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--config {text} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _absent(if_exists: bool) -> ErrorCode | None:
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if if_exists else None


def _raise_first(
    verb: str, results: Iterable[tuple[str | None, int, str | None]], passing: ErrorCode | None = None
) -> None:
    """One sentence for the first topic that failed, in another way than `passing`."""
    for name, code, message in results:
        if not code or code == passing:
            continue
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise CommandError(with_next_step(f"cannot {verb} topic {name}: it does not exist", error_code(code)))
        reason = f"{error_code(code).name}, {message}" if message else error_code(code).name
        raise CommandError(with_next_step(f"cannot {verb} topic {name}: {reason}", error_code(code)))
