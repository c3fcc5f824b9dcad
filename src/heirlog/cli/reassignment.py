"""What `heirlog reassign` asks of a cluster, and the files it reads and writes (Kafka's JSON, version 1)."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from heirlog.cli.errors import CommandError
from heirlog.cli.next_steps import with_next_step
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.types import BrokerEpoch, BrokerId, Uuid

if TYPE_CHECKING:
    from heirlog.blocking import Client

TopicPartition: TypeAlias = tuple[str, int]
Assignment: TypeAlias = Mapping[TopicPartition, Sequence[int]]

ANY_DIRECTORY = "any"
TOPICS_FORM = '{"topics": [{"topic": "t"}], "version": 1}'
PLAN_FORM = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}], "version": 1}'

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class Reassignment(NamedTuple):
    """On its way: all replicas of now, and which of them come and go."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


# files


def topics_from(file: Path) -> list[str]:
    """Raises CommandError."""
    names = [entry["topic"] for entry in _parsed(file, TOPICS_FORM, "topics", {"topic": str})]
    if not names:
        raise CommandError(f"{file} names no topic")
    return sorted(set(names))


def assignment_from(file: Path) -> dict[TopicPartition, list[int]]:
    """Raises CommandError: not of the form, a partition or a broker twice, another directory than "any"."""
    wanted: dict[TopicPartition, list[int]] = {}
    for entry in _parsed(file, PLAN_FORM, "partitions", {"topic": str, "partition": int, "replicas": list}):
        key = entry["topic"], entry["partition"]
        replicas = entry["replicas"]
        name = f"{key[0]}-{key[1]}"
        if key in wanted:
            raise CommandError(f"{file} names {name} twice")
        if not replicas or not all(type(broker) is int for broker in replicas):
            raise CommandError(f"{file}: the replicas of {name} are not a list of broker ids")
        if len(set(replicas)) < len(replicas):
            raise CommandError(f"{file}: the replicas of {name} name a broker twice")
        if any(directory != ANY_DIRECTORY for directory in entry.get("log_dirs", [])):
            raise CommandError(
                f"{file}: {name} is assigned to a certain log directory, which this command cannot do; leave log_dirs "
                'out or write "any"'
            )
        wanted[key] = replicas
    if not wanted:
        raise CommandError(f"{file} names no partition")
    return wanted


def _parsed(file: Path, form: str, member: str, types: Mapping[str, type]) -> list[dict[str, Any]]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file} is not valid JSON: {error}") from error
    entries = content.get(member) if isinstance(content, dict) else None
    if (
        not isinstance(entries, list)
        or content.get("version", 1) != 1
        or not all(isinstance(e, dict) and all(type(e.get(n)) is t for n, t in types.items()) for e in entries)
    ):
        raise CommandError(f"{file} is not of the form {form}")
    return entries


def assignment_json(assignment: Assignment) -> str:
    """One line, as kafka-reassign-partitions prints and reads it."""
    partitions = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(replicas),
            "log_dirs": [ANY_DIRECTORY] * len(replicas),
        }
        for (topic, partition), replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


# the cluster


def replicas_now(
    client: Client, topics: Sequence[str], missing_is_fine: bool = False
) -> dict[TopicPartition, list[int]]:
    """The replicas of every partition of these topics, coming and going ones included.

    Raises CommandError for a topic that cannot be described, unless it is missing and that is fine.
    """
    from heirlog.client.admin import describe_topic_partitions

    found: dict[TopicPartition, list[int]] = {}
    for topic in client.run(describe_topic_partitions(topics)):
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and missing_is_fine:
            continue
        if topic.error_code:
            failure = error_code(topic.error_code)
            raise CommandError(with_next_step(f"topic {topic.name} cannot be described: {failure.name}", failure))
        for partition in topic.partitions:
            found[str(topic.name), partition.partition_index] = list(partition.replica_nodes)
    return found


def reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """All that are on their way. Raises KafkaError."""
    from heirlog.client.admin import to_controller
    from heirlog.protocol.messages import ListPartitionReassignmentsRequest

    request = ListPartitionReassignmentsRequest(topics=None)
    answer = client.run(to_controller(request, lambda got: [got.error_code]))
    if answer.error_code:
        raise KafkaError(error_code(answer.error_code), answer.error_message or "reassignments cannot be listed")
    return {
        (topic.name, partition.partition_index): Reassignment(
            list(partition.replicas), list(partition.adding_replicas), list(partition.removing_replicas)
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def reassign_partitions(
    client: Client,
    wanted: Mapping[TopicPartition, Sequence[int] | None],
    timeout_ms: int,
    same_factor: bool = False,
) -> Any:
    """The answer of AlterPartitionReassignments; None for a partition cancels. Raises KafkaError."""
    from heirlog.client.admin import to_controller
    from heirlog.protocol.messages import AlterPartitionReassignmentsRequest

    topics: dict[str, AlterPartitionReassignmentsRequest.ReassignableTopic] = {}
    for (name, index), replicas in sorted(wanted.items()):
        topic = topics.setdefault(name, AlterPartitionReassignmentsRequest.ReassignableTopic(name=name))
        topic.partitions.append(
            AlterPartitionReassignmentsRequest.ReassignablePartition(
                partition_index=index, replicas=None if replicas is None else list(replicas)
            )
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms, allow_replication_factor_change=not same_factor, topics=list(topics.values())
    )
    answer = client.run(to_controller(request, lambda got: [got.error_code]))
    if answer.error_code:
        raise KafkaError(error_code(answer.error_code), answer.error_message or "the reassignment was refused")
    return answer


def failures_of(answer: Any) -> dict[TopicPartition, str]:
    return {
        (topic.name, partition.partition_index): f"{error_code(partition.error_code).name}, {partition.error_message}"
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    }


def proposed(
    client: Client, current: Assignment, brokers: Sequence[int], racks: bool
) -> dict[TopicPartition, Sequence[int]]:
    """Partitions of each topic spread over the brokers, as the controller spreads those of a new topic.

    Raises CommandError: an unknown broker, brokers of which only some have a rack, too few brokers.
    """
    from heirlog.client.admin import describe_cluster
    from heirlog.controller.placement import place
    from heirlog.metadata.state import BrokerRegistration

    known = {broker.broker_id: broker.rack for broker in client.run(describe_cluster(brokers)).brokers}
    unknown = sorted(set(brokers) - set(known))
    if unknown:
        raise CommandError(f"broker {unknown[0]} does not run; heirlog broker list shows the running brokers")
    named = [broker for broker in brokers if known[broker] is not None]
    if racks and named and len(named) < len(brokers):
        raise CommandError("not all of these brokers have a rack; use --disable-rack-aware to spread without racks")
    states = [
        BrokerRegistration(
            BrokerId(broker), BrokerEpoch(0), Uuid(bytes(16)), rack=known[broker] if racks else None, fenced=False
        )
        for broker in brokers
    ]
    future: dict[TopicPartition, Sequence[int]] = {}
    for topic in sorted({name for name, _ in current}):
        indexes = sorted(index for name, index in current if name == topic)
        factor = len(current[topic, indexes[0]])
        try:
            assigned = place(states, len(indexes), factor, random.SystemRandom())
        except KafkaError as error:
            raise CommandError(f"{topic} has {factor} replicas: name as many brokers at least ({error})") from error
        future.update(((topic, index), replicas) for index, replicas in zip(indexes, assigned, strict=True))
    return future


# throttles


def set_throttles(
    client: Client,
    wanted: Assignment,
    current: Assignment,
    moving: Mapping[TopicPartition, Reassignment],
    rate: int,
) -> None:
    """Every replica of now is throttled as a source, every coming one as a target; and the rate on each of them.

    Raises CommandError.
    """
    sources: dict[str, list[str]] = {}
    targets: dict[str, list[str]] = {}
    brokers: set[int] = set()
    for (topic, index), replicas in sorted(wanted.items()):
        there = [broker for broker in current[topic, index] if broker not in _adding(moving, (topic, index))]
        coming = [broker for broker in replicas if broker not in there]
        sources.setdefault(topic, []).extend(f"{index}:{broker}" for broker in there)
        targets.setdefault(topic, []).extend(f"{index}:{broker}" for broker in coming)
        brokers |= {*there, *coming}
    _configure(client, ((TOPIC, topic, LEADER_REPLICAS, ",".join(sources[topic])) for topic in sources))
    _configure(client, ((TOPIC, t, FOLLOWER_REPLICAS, ",".join(targets[t])) for t in targets if targets[t]))
    live = sorted(brokers & set(client.brokers()))
    _configure(client, ((BROKER, str(b), name, str(rate)) for b in live for name in (LEADER_RATE, FOLLOWER_RATE)))


def _adding(moving: Mapping[TopicPartition, Reassignment], key: TopicPartition) -> list[int]:
    return moving[key].adding if key in moving else []


def clear_throttles(client: Client, topics: Iterable[str]) -> list[str]:
    """Delete the throttles of every broker that runs and of these topics; whose there were. Raises CommandError."""
    owners = [(BROKER, str(broker), (LEADER_RATE, FOLLOWER_RATE)) for broker in sorted(client.brokers())]
    owners += [(TOPIC, topic, (LEADER_REPLICAS, FOLLOWER_REPLICAS)) for topic in topics]
    found = [(kind, name, key) for kind, name, keys in owners for key in _own_values(client, kind, name, keys)]
    _configure(client, ((kind, name, key, None) for kind, name, key in found))
    return list(dict.fromkeys(f"broker {name}" if kind == BROKER else name for kind, name, _ in found))


def _own_values(client: Client, kind: int, name: str, keys: Sequence[str]) -> Iterator[str]:
    """Which of these were set for this very resource; none where it cannot be described."""
    from heirlog.protocol.messages import DescribeConfigsRequest

    own_source = {TOPIC: 1, BROKER: 2}[kind]
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys)
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = client.send_to_any(request) if kind == TOPIC else client.send_to_broker(int(name), request)
    (result,) = answer.results
    for entry in result.configs:
        if entry.config_source == own_source and entry.value:
            yield entry.name


def _configure(client: Client, values: Iterable[tuple[int, str, str, str | None]]) -> None:
    """(resource type, resource, name, value); None deletes. A broker takes its own values. Raises CommandError."""
    from heirlog.protocol.messages import IncrementalAlterConfigsRequest

    resources: dict[tuple[int, str], IncrementalAlterConfigsRequest.AlterConfigsResource] = {}
    for kind, owner, name, value in values:
        resource = resources.setdefault(
            (kind, owner),
            IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=owner),
        )
        resource.configs.append(
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=name, config_operation=DELETE if value is None else SET, value=value
            )
        )
    for (kind, owner), one in resources.items():
        request = IncrementalAlterConfigsRequest(resources=[one])
        answer = client.send_to_any(request) if kind == TOPIC else client.send_to_broker(int(owner), request)
        (result,) = answer.responses
        if result.error_code:
            raise CommandError(
                f"cannot change the throttle of {result.resource_name}: {error_code(result.error_code).name}, "
                f"{result.error_message or ''}; run it without --throttle, or with --preserve-throttles"
            )
