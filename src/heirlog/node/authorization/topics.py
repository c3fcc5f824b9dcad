"""Guards of what names topics: those that the client may not touch are refused one by one, the others are served.

Whether a topic is there is not told to those who may not see it: the refusal is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from heirlog.context import CLOSE
from heirlog.controller.refusals import sentence
from heirlog.metadata.acls import Operation, ResourceType
from heirlog.node.authorization.call import Call, Guard, changed, parted, without
from heirlog.protocol.api import response_class
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from heirlog.protocol.types import METADATA_TOPIC, ZERO_UUID

TOPIC = ResourceType.TOPIC
CLUSTER = ResourceType.CLUSTER
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SENTENCE = sentence(DENIED)
PRODUCE_BY_ID = 13


def each(
    asked_in: str,
    answered_in: str,
    refused: Callable[[Any], Any],
    name_of: Callable[[Call, Any], str | None] = lambda call, topic: topic.name,
) -> Guard:
    """asked_in, answered_in: the lists of the request and of the answer. refused: the answer for one of the request.

    name_of: None for an id that nobody knows, about which the handler has to say so.
    """

    def guard(call: Call) -> Any:
        left, denied = parted(getattr(call.request, asked_in), lambda topic: _is_open(call, name_of(call, topic)))
        return split(call, asked_in, answered_in, left, denied, refused)

    return guard


def _is_open(call: Call, name: str | None) -> bool:
    return name is None or call.may(TOPIC, name)


def split(
    call: Call, asked_in: str, answered_in: str, left: list[Any], denied: list[Any], refused: Callable[[Any], Any]
) -> Any:
    """The handler's answer to the request without what is denied, and the refusals of that behind it."""
    if not denied:
        return call.handle()
    answer = call.handle(without(call.request, **{asked_in: left})) if left else response_class(call.route.key)()
    return changed(answer, lambda response: getattr(response, answered_in).extend(map(refused, denied)))


# -- records ----------------------------------------------------------------------------------------------------------


def produce(call: Call) -> Any:
    """With acks=0 nobody can be told: the connection closes, as on every failure."""
    request: ProduceRequest = call.request
    by_id = call.context.api_version >= PRODUCE_BY_ID
    code = DENIED
    left, denied = parted(
        request.topic_data, lambda topic: _is_open(call, call.topic_name(topic.topic_id) if by_id else topic.name)
    )
    transactional_id = request.transactional_id
    if transactional_id is not None and not call.may(ResourceType.TRANSACTIONAL_ID, transactional_id):
        code, left, denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, [], list(request.topic_data)
    answer = split(call, "topic_data", "responses", left, denied, lambda topic: _produce_refused(topic, code))
    return CLOSE if denied and request.acks == 0 else answer


def _produce_refused(topic: ProduceRequest.TopicProduceData, code: ErrorCode) -> ProduceResponse.TopicProduceResponse:
    return ProduceResponse.TopicProduceResponse(
        topic_id=topic.topic_id,
        name=topic.name,
        partition_responses=[
            ProduceResponse.PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
            for data in topic.partition_data
        ],
    )


def _offsets_refused(topic: ListOffsetsRequest.ListOffsetsTopic) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=partition.partition_index, error_code=DENIED
            )
            for partition in topic.partitions
        ],
    )


list_offsets = each("topics", "topics", _offsets_refused)


def _records_kept(topic: DeleteRecordsRequest.DeleteRecordsTopic) -> DeleteRecordsResponse.DeleteRecordsTopicResult:
    return DeleteRecordsResponse.DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=partition.partition_index, low_watermark=-1, error_code=DENIED
            )
            for partition in topic.partitions
        ],
    )


delete_records = each("topics", "topics", _records_kept)


def _epochs_refused(
    topic: OffsetForLeaderEpochRequest.OffsetForLeaderTopic,
) -> OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult:
    return OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            OffsetForLeaderEpochResponse.EpochEndOffset(partition=partition.partition, error_code=DENIED)
            for partition in topic.partitions
        ],
    )


_epochs_of_each = each("topics", "topics", _epochs_refused, lambda call, topic: topic.topic)


def offset_for_leader_epoch(call: Call) -> Any:
    """Replicas ask by the cluster, consumers by their topics (KIP-320)."""
    return call.handle() if call.may(CLUSTER, is_denial=False) else _epochs_of_each(call)


def _producers_refused(topic: DescribeProducersRequest.TopicRequest) -> DescribeProducersResponse.TopicResponse:
    return DescribeProducersResponse.TopicResponse(
        name=topic.name,
        partitions=[
            DescribeProducersResponse.PartitionResponse(
                partition_index=index, error_code=DENIED, error_message=SENTENCE
            )
            for index in topic.partition_indexes
        ],
    )


describe_producers = each("topics", "topics", _producers_refused)

# -- topics come, grow and go -----------------------------------------------------------------------------------------


def create_topics(call: Call) -> Any:
    """CREATE on the cluster, or on each topic; the configurations of the new topic are shown to whom may describe them.

    A name that is given twice is invalid, whoever asks for it, and so is the metadata log's.
    """
    request: CreateTopicsRequest = call.request
    times = Counter(topic.name for topic in request.topics)
    has_cluster = call.may(CLUSTER, is_denial=False)
    left, denied = parted(
        request.topics,
        lambda topic: (
            has_cluster or times[topic.name] > 1 or topic.name == METADATA_TOPIC or call.may(TOPIC, topic.name)
        ),
    )
    answer = split(call, "topics", "topics", left, denied, _not_created)
    return changed(answer, lambda response: _hide_configs(call, response))


def _not_created(topic: CreateTopicsRequest.CreatableTopic) -> CreateTopicsResponse.CreatableTopicResult:
    return CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=DENIED, error_message=SENTENCE)


def _hide_configs(call: Call, response: CreateTopicsResponse) -> None:
    for topic in response.topics:
        if topic.error_code == ErrorCode.NONE and not call.may_also(Operation.DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.topic_config_error_code = DENIED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


def create_partitions(call: Call) -> Any:
    """A name that is given twice is invalid, whoever asks for it."""
    request: CreatePartitionsRequest = call.request
    times = Counter(topic.name for topic in request.topics)
    left, denied = parted(request.topics, lambda topic: times[topic.name] > 1 or call.may(TOPIC, topic.name))
    return split(call, "topics", "results", left, denied, _not_grown)


def _not_grown(
    topic: CreatePartitionsRequest.CreatePartitionsTopic,
) -> CreatePartitionsResponse.CreatePartitionsTopicResult:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=topic.name, error_code=DENIED, error_message=SENTENCE
    )


def delete_topics(call: Call) -> Any:
    """DELETE on the cluster, or on each topic. The name behind an id is told to those who may describe the topic.

    Only what is asked for properly is judged here; the rest is refused by the handler, whoever asks.
    """
    request: DeleteTopicsRequest = call.request
    if call.may(CLUSTER, is_denial=False) or not call.node.config["delete.topic.enable"]:
        return call.handle()
    names = Counter([*request.topic_names, *(topic.name for topic in request.topics if topic.name is not None)])
    ids = Counter(topic.topic_id for topic in request.topics if topic.name is None)
    refused = []
    kept_names = []
    for name in request.topic_names:
        if names[name] == 1 and not _may_delete_named(call, name):
            refused.append(_not_deleted(call, name, ZERO_UUID))
        else:
            kept_names.append(name)
    kept = []
    for topic in request.topics:
        known = topic.name
        if known is None:
            known = call.topic_name(topic.topic_id) if ids[topic.topic_id] == 1 else None
            is_denied = known is not None and not call.may(TOPIC, known)
        else:
            is_proper = names[known] == 1 and topic.topic_id == ZERO_UUID
            is_denied = is_proper and not _may_delete_named(call, known)
        if is_denied and known is not None:
            refused.append(_not_deleted(call, known, topic.topic_id))
        else:
            kept.append(topic)
    if not refused:
        return call.handle()
    if not kept and not kept_names:
        return DeleteTopicsResponse(responses=refused)
    answer = call.handle(without(request, topics=kept, topic_names=kept_names))
    return changed(answer, lambda response: response.responses.extend(refused))


def _may_delete_named(call: Call, name: str) -> bool:
    return call.may_also(Operation.DESCRIBE, TOPIC, name) and call.may(TOPIC, name)


def _not_deleted(call: Call, name: str, topic_id: bytes) -> DeleteTopicsResponse.DeletableTopicResult:
    """Under what it was asked for. A name of a topic that may be seen and is not there is said to be unknown."""
    is_seen = call.may_also(Operation.DESCRIBE, TOPIC, name)
    if topic_id == ZERO_UUID and is_seen and name not in call.node.image.topic_ids:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        code = DENIED
    shown = name if is_seen or topic_id == ZERO_UUID else None
    return DeleteTopicsResponse.DeletableTopicResult(
        name=shown, topic_id=topic_id, error_code=code, error_message=sentence(code)
    )
