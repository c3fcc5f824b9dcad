"""CreateTopics and DeleteTopics.

A topic is created in one batch: a Topic record, its Config records (with ClearElr after min.insync.replicas, as after
every record of that name), then one Partition record each. The ISR of a new partition is the active part of its
assignment. A replica that is not active at creation is not eligible, because it never had any record. The topics of one
request succeed or fail independently of each other.

Reasons to refuse a topic, in this order: a name that comes twice in the request; a bad name; a name that exists; a name
that differs from another one only in '.' and '_'; a bad configuration; a bad number of partitions, replication factor
or assignment.

A request with validateOnly gets a full answer, with a topic id that no topic will have, as on Apache Kafka.

One request creates at most 10,000 records, because a topic must not exist with only half of its partitions
(`record_limit.py`). Deletions have no limit: each stands for itself.

Source: KIP-4, KIP-464 (defaults as -1), KIP-525 (configs in the answer), KIP-516 (ids).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from heirlog.controller.assignments import bad_assignment, check_replicas, first_state
from heirlog.controller.configs import config_records
from heirlog.controller.controller_result import ControllerResult, all_or_none
from heirlog.controller.leadership import Leadership
from heirlog.controller.mutation_quota import no_quota
from heirlog.controller.placement import place
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.env import Random
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.configs import ConfigEntry, describe_topic
from heirlog.metadata.image import TOPIC_RESOURCE, Image, partition_record
from heirlog.metadata.state import Ids
from heirlog.metadata.topic_configs import TOPIC_CONFIGS, validate_topic_configs
from heirlog.metadata.topic_name import collision_key, topic_name_error
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from heirlog.protocol.records import RemoveTopicRecord, TopicRecord
from heirlog.protocol.types import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, BrokerId, Uuid

_DEFAULT: Final = -1
_NAME: Final = "Creation of topics"

Asked = CreateTopicsRequest.CreatableTopic
Created = CreateTopicsResponse.CreatableTopicResult
CreatedConfig = CreateTopicsResponse.CreatableTopicConfigs


@dataclass(slots=True)
class _Creation:
    """One topic that passed every check."""

    topic_id: Uuid
    assignments: list[Ids]
    records: list[Any]


def create_topics(
    image: Image,
    static: StaticConfig,
    request: CreateTopicsRequest,
    random: Random,
    take: Callable[[int], None] = no_quota,
) -> ControllerResult[CreateTopicsResponse]:
    """Returns records of all topics that can be created, and a result per requested name.

    take: called with the number of partitions that a topic would have; raises KafkaError where the client must wait.
    """
    times = Counter(topic.name for topic in request.topics)
    twice = {name for name, count in times.items() if count > 1}
    taken = {collision_key(name): name for name in image.topic_ids}
    records: list[Any] = []
    made = 0
    results: list[Created] = []
    unset: list[ConfigEntry] = []
    for asked in {topic.name: topic for topic in request.topics}.values():
        try:
            _check_name(image, asked.name, twice, taken)
            _check_room(static, asked, made)
            creation = _create(image, static, asked, random)
            if made + len(creation.records) > MAX_RECORDS_PER_USER_OP:
                raise _too_many()
            take(len(creation.assignments))
        except KafkaError as error:
            results.append(Created(name=asked.name, error_code=error.code, error_message=error.message))
            continue
        made += len(creation.records)
        taken[collision_key(asked.name)] = asked.name
        if not request.validate_only:
            records += creation.records
        # what a topic without values of its own has, which takes a while to find and is the same for all
        unset = unset or describe_topic(image, static, asked.name)
        results.append(_created(asked, creation, unset))
    response = CreateTopicsResponse(topics=results)
    # a topic without its partitions would be worse than none
    return ControllerResult(lambda base_offset: response, all_or_none(_NAME, records))


def _check_room(static: StaticConfig, asked: Asked, made: int) -> None:
    """Check before any replica is placed: otherwise refusing a thousand large topics would take minutes."""
    partitions = len(asked.assignments) or asked.num_partitions
    if made + (static.int("num.partitions") if partitions == _DEFAULT else partitions) > MAX_RECORDS_PER_USER_OP:
        raise _too_many()


def _too_many() -> KafkaError:
    return too_large(
        "Excessively large number of partitions per request",
        "create the topics in several requests, or with fewer partitions and add the others later",
    )


def _check_name(image: Image, name: str, twice: set[str], taken: Mapping[str, str]) -> None:
    if name in twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic name {name} in the request.")
    if name == METADATA_TOPIC:
        # every node has it as the directory of its metadata log, although it is not a topic
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    wrong = topic_name_error(name)
    if wrong is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    if name in image.topic_ids:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = taken.get(collision_key(name))
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic '{other}': in metrics '.' and '_' look the same.",
        )


def _create(image: Image, static: StaticConfig, asked: Asked, random: Random) -> _Creation:
    """Raises KafkaError."""
    # even if the same name comes again with a value
    validate_topic_configs({config.name: None for config in asked.configs if config.value is None})
    given = {config.name: config.value for config in asked.configs}
    validate_topic_configs(given)
    assignments = _manual(image, asked) if asked.assignments else _automatic(image, static, asked, random)
    topic_id = _new_topic_id(image, random)
    records: list[Any] = [TopicRecord(name=asked.name, topic_id=topic_id)]
    records += config_records(image, TOPIC_RESOURCE, asked.name, given)
    leadership = Leadership(image, static)
    for partition, replicas in enumerate(assignments):
        state = first_state(image, leadership, partition, replicas, manual=bool(asked.assignments))
        records.append(partition_record(topic_id, partition, state))
    return _Creation(topic_id, assignments, records)


def _automatic(image: Image, static: StaticConfig, asked: Asked, random: Random) -> list[Ids]:
    partitions, factor = asked.num_partitions, asked.replication_factor
    if factor != _DEFAULT and factor < 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default."
        )
    if partitions != _DEFAULT and partitions < 1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    partitions = static.int("num.partitions") if partitions == _DEFAULT else partitions
    factor = static.int("default.replication.factor") if factor == _DEFAULT else factor
    return place(image.brokers.values(), partitions, factor, random)


def _manual(image: Image, asked: Asked) -> list[Ids]:
    if asked.replication_factor != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if asked.num_partitions != _DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_partition: dict[int, Ids] = {}
    for assignment in asked.assignments:
        if assignment.partition_index in by_partition:
            raise bad_assignment(f"Found multiple manual partition assignments for {assignment.partition_index}")
        replicas = tuple(BrokerId(broker) for broker in assignment.broker_ids)
        check_replicas(image, replicas)
        by_partition[assignment.partition_index] = replicas
    if sorted(by_partition) != list(range(len(by_partition))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    if len({len(replicas) for replicas in by_partition.values()}) > 1:
        raise bad_assignment("The manual partition assignment uses different replication factors")
    return [by_partition[partition] for partition in range(len(by_partition))]


def _new_topic_id(image: Image, random: Random) -> Uuid:
    while True:
        topic_id = Uuid(random.randbytes(16))
        # a command line would take an id that begins with '-' for an option
        if topic_id not in image.topics and topic_id not in (ZERO_UUID, METADATA_TOPIC_ID) and topic_id[0] >> 2 != 62:
            return topic_id


def _created(asked: Asked, creation: _Creation, unset: list[ConfigEntry]) -> Created:
    given = {config.name: config.value for config in asked.configs}
    configs = []
    for entry in unset:
        own = given.get(entry.name)
        configs.append(
            CreatedConfig(
                name=entry.name,
                value=entry.value if own is None else own,
                config_source=entry.source if own is None else 1,
                is_sensitive=TOPIC_CONFIGS[entry.name].is_sensitive,
            )
        )
    return Created(
        name=asked.name,
        topic_id=creation.topic_id,
        error_message=None,
        num_partitions=len(creation.assignments),
        replication_factor=len(creation.assignments[0]),
        configs=configs,
    )


def delete_topics(
    image: Image, static: StaticConfig, request: DeleteTopicsRequest, take: Callable[[int], None] = no_quota
) -> ControllerResult[DeleteTopicsResponse]:
    """Delete topics by name or by id (v6); each gets one result. take: as in `create_topics`.

    INVALID_REQUEST: a name or id that comes twice, and an entry with both or neither. Each entry with both or neither
    gets its own result.
    """
    given = [(topic.name, Uuid(topic.topic_id)) for topic in request.topics]
    asked = Counter(given + [(name, ZERO_UUID) for name in request.topic_names])
    targets = Counter(_target(image, name, topic_id) for name, topic_id in asked)
    records: list[Any] = []
    results = []
    for (name, topic_id), times in asked.items():
        target = _target(image, name, topic_id)
        code = _deletion_refusal(image, static, name, topic_id, max(times, targets[target] if target else 1))
        result = DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code)
        if code is ErrorCode.NONE:
            assert target is not None
            topic = image.topics[target]
            try:
                take(len(image.partitions[target]))
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
                results.append(result)
                continue
            result.name, result.topic_id = topic.name, topic.id
            records.append(RemoveTopicRecord(topic_id=topic.id))
        else:
            result.error_message = _DELETION_SENTENCES[code]
        names_one_topic = (name is None) != (topic_id == ZERO_UUID)
        results += [result] * (1 if names_one_topic else times)
    response = DeleteTopicsResponse(responses=results)
    return ControllerResult(lambda base_offset: response, records)


_DELETION_SENTENCES: Final = {
    ErrorCode.TOPIC_DELETION_DISABLED: "Topic deletion is disabled (delete.topic.enable=false).",
    ErrorCode.INVALID_REQUEST: "Give each topic once, by its name or by its id.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}


def _target(image: Image, name: str | None, topic_id: Uuid) -> Uuid | None:
    if name is not None:
        return image.topic_ids.get(name)
    return topic_id if topic_id in image.topics else None


def _deletion_refusal(image: Image, static: StaticConfig, name: str | None, topic_id: Uuid, times: int) -> ErrorCode:
    if not static["delete.topic.enable"]:
        return ErrorCode.TOPIC_DELETION_DISABLED
    if (name is None) == (topic_id == ZERO_UUID):
        return ErrorCode.INVALID_REQUEST
    if times > 1:
        return ErrorCode.INVALID_REQUEST
    if _target(image, name, topic_id) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name is not None else ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.NONE
