"""CreatePartitions: a topic gets more partitions, never fewer.

A new partition has as many replicas as partition 0. They are placed like those of a new topic, or as the request
assigns them (one assignment per new partition). The topics of one request succeed or fail independently of each other;
a name that comes twice is refused, with one result.

Existing records stay in their partitions. Keys that a producer distributes by hash go to other partitions from now on.
The operator has to consider that; the controller cannot see it.

Internal topics get none. The hash of a group, a transactional id or a share partition, and the number of partitions,
decide where its state is. With another number no broker would find committed offsets again, two coordinators could have
transactions of one id, and consumers would skip records.

One request creates at most 10,000 records, because a topic must not get only half of the requested partitions
(`record_limit.py`).

Source: KIP-195.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from heirlog.controller.assignments import bad_assignment, check_replicas, first_state
from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.leadership import Leadership
from heirlog.controller.mutation_quota import no_quota
from heirlog.controller.placement import place
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.env import Random
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.image import Image, partition_record
from heirlog.metadata.state import Ids
from heirlog.metadata.topic_name import INTERNAL_TOPICS
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse
from heirlog.protocol.types import BrokerId

Asked = CreatePartitionsRequest.CreatePartitionsTopic
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(
    image: Image,
    static: StaticConfig,
    request: CreatePartitionsRequest,
    random: Random,
    take: Callable[[int], None] = no_quota,
) -> ControllerResult[CreatePartitionsResponse]:
    """Records of all accepted topics, and a result per requested topic; names that come twice are first.

    take: called with the number of new partitions of a topic; raises KafkaError where the client must wait.
    """
    times = Counter(topic.name for topic in request.topics)
    results = [
        Result(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name.")
        for name, count in times.items()
        if count > 1
    ]
    records: list[Any] = []
    for asked in request.topics:
        if times[asked.name] > 1:
            continue
        try:
            grown = _grow(image, static, asked, random, MAX_RECORDS_PER_USER_OP - len(records))
            take(len(grown))
            records += grown
        except KafkaError as error:
            results.append(Result(name=asked.name, error_code=error.code, error_message=error.message))
        else:
            results.append(Result(name=asked.name))
    response = CreatePartitionsResponse(results=results)
    return ControllerResult(lambda base_offset: response, [] if request.validate_only else records)


def _grow(image: Image, static: StaticConfig, asked: Asked, random: Random, room: int) -> list[Any]:
    """The records of one topic's new partitions. Raises KafkaError."""
    topic_id = image.topic_ids.get(asked.name)
    if topic_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if asked.name in INTERNAL_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The number of partitions of the internal topic {asked.name} cannot be changed: "
            "brokers would not find the state again that is stored there.",
        )
    existing = image.partitions[topic_id]
    first = len(existing)
    additional = _additional(asked, first)
    factor = len(existing[0].replicas)
    manual = asked.assignments is not None
    if asked.assignments is not None and len(asked.assignments) != additional:
        raise bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only {len(asked.assignments)} assignment(s) "
            "were specified."
        )
    if additional > room:
        raise too_large("Excessively large number of partitions per request", "add them in several requests")
    if asked.assignments is not None:
        assignments = [_manual(image, assignment, factor) for assignment in asked.assignments]
    else:
        assignments = place(image.brokers.values(), additional, factor, random)
    leadership = Leadership(image, static)
    return [
        partition_record(topic_id, index, first_state(image, leadership, index, replicas, manual=manual))
        for index, replicas in enumerate(assignments, first)
    ]


def _additional(asked: Asked, present: int) -> int:
    if asked.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if asked.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {present} partition(s); {asked.count} would not be an increase.",
        )
    return asked.count - present


def _manual(image: Image, asked: CreatePartitionsRequest.CreatePartitionsAssignment, factor: int) -> Ids:
    replicas = tuple(BrokerId(broker) for broker in asked.broker_ids)
    check_replicas(image, replicas)
    if len(replicas) != factor:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
    return replicas
