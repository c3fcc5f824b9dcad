"""DescribeTopicPartitions (key 75): partitions with their ELR, page by page (KIP-966).

v0 only. Topics go by name, ascending. A page holds at most min(asked, max.request.partition.size.limit) partitions and
at least one; the cursor names the next: the same topic and partition, or partition 0 of the next name when the page
filled exactly at a topic's end. There is no consistency between pages. With names in the request the cursor's topic
must be among them. Both ELR lists are always there, empty if need be.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.describe import TOPIC_OPERATIONS, PartitionStates
from heirlog.apis.common.ports import Describes
from heirlog.context import Context, Reply
from heirlog.metadata.acls import NOT_ASKED, AclOperation, ResourceType
from heirlog.metadata.image import Image
from heirlog.metadata.state import TopicImage
from heirlog.metadata.topic_name import INTERNAL_TOPICS, topic_name_error
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from heirlog.protocol.types import ZERO_UUID

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor


def guard(
    call: Call[DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse],
) -> Reply[DescribeTopicPartitionsResponse]:
    """As in Metadata: what the client must not describe does not exist for it, and is refused where it is named."""
    request = call.request
    if cursor_error(request) is not None:
        # refused for every client
        return call.handle()
    is_named = bool(request.topics)
    names = _names(call.port.image, request)
    seen, hidden = parted(names, lambda name: call.may(ResourceType.TOPIC, name, is_denial=is_named))
    hidden = hidden if is_named else []
    if not seen:
        return DescribeTopicPartitionsResponse(topics=[_hidden(name) for name in hidden])
    smaller = without(
        request,
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in seen],
        # the cursor's topic may be hidden by now, or deleted: the next one starts from its beginning
        cursor=request.cursor if request.cursor is not None and request.cursor.topic_name in seen else None,
    )

    def finish(response: DescribeTopicPartitionsResponse) -> None:
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_ASKED:
                topic.topic_authorized_operations = call.operations(ResourceType.TOPIC, topic.name or "")
        # as on Kafka on every page from the cursor on: clients merge a topic that several pages name
        response.topics += [_hidden(name) for name in hidden]

    return changed(call.handle(smaller), finish)


def _hidden(name: str) -> Topic:
    return Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=ZERO_UUID)


def handle(
    node: Describes, request: DescribeTopicPartitionsRequest, context: Context
) -> DescribeTopicPartitionsResponse:
    try:
        return describe(node.image, context.listener, request, node.config.int("max.request.partition.size.limit"))
    except KafkaError as error:
        # the response has no error of its own: every topic asked for carries the refusal
        assert request.cursor is not None
        refused = [topic.name for topic in request.topics] or [request.cursor.topic_name]
        return DescribeTopicPartitionsResponse(topics=[Topic(error_code=error.code, name=name) for name in refused])


def describe(
    image: Image, listener: str, request: DescribeTopicPartitionsRequest, limit: int
) -> DescribeTopicPartitionsResponse:
    """One page of at most `limit` partitions. Raises KafkaError INVALID_REQUEST: a cursor that cannot be followed."""
    wrong = cursor_error(request)
    if wrong is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
    names, cursor = _names(image, request), request.cursor
    # a topic deleted between two pages: the next one starts from its beginning
    first_partition = cursor.partition_index if cursor is not None and names[:1] == [cursor.topic_name] else 0
    return page(image, listener, names, first_partition, max(1, min(limit, request.response_partition_limit)))


def cursor_error(request: DescribeTopicPartitionsRequest) -> str | None:
    """Why the cursor cannot be followed; None if it can, or there is none."""
    cursor = request.cursor
    if cursor is None:
        return None
    if cursor.partition_index < 0:
        return "the cursor's partition is negative"
    if request.topics and all(topic.name != cursor.topic_name for topic in request.topics):
        return "the cursor's topic is not among the requested topics"
    return None


def _names(image: Image, request: DescribeTopicPartitionsRequest) -> list[str]:
    """Names that are asked for, those before the cursor left out."""
    asked = {topic.name for topic in request.topics} if request.topics else image.topic_ids
    first = "" if request.cursor is None else request.cursor.topic_name
    return sorted(name for name in asked if name >= first)


def page(
    image: Image, listener: str, names: list[str], first_partition: int, limit: int
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse(topics=[], next_cursor=None)
    room, states = limit, PartitionStates(image, listener)
    for position, name in enumerate(names):
        topic_id = image.topic_ids.get(name)
        if topic_id is None:
            response.topics.append(_unknown(name))
            continue
        partitions = image.partitions[topic_id]
        wanted = [index for index in sorted(partitions) if index >= first_partition]
        first_partition = 0
        response.topics.append(_described(image, states, image.topics[topic_id], wanted[:room]))
        if len(wanted) > room:
            response.next_cursor = Cursor(topic_name=name, partition_index=wanted[room])
            break
        room -= len(wanted)
        if room == 0:
            if position + 1 < len(names):
                response.next_cursor = Cursor(topic_name=names[position + 1], partition_index=0)
            break
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    malformed = topic_name_error(name) is not None
    return Topic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if malformed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        topic_authorized_operations=TOPIC_OPERATIONS if name else NOT_ASKED,
    )


def _described(
    image: Image, states: PartitionStates, topic: TopicImage, indexes: list[int]
) -> DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    described = []
    for index in indexes:
        state = image.partitions[topic.id][index]
        described.append(
            Partition(
                error_code=states.leader_error(state),
                partition_index=index,
                leader_id=state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=list(state.elr),
                last_known_elr=list(state.last_known_elr),
                offline_replicas=states.offline_replicas(state),
            )
        )
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=described,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


API = Api(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    broker=Served((0, 0), handle, needs=(Need(AclOperation.DESCRIBE, ResourceType.TOPIC),), guard=guard),
    has_large_answer=True,
    limits=(Limit("max.request.partition.size.limit", "partitions in an answer"),),
    remarks="with ELR and LastKnownELR",
)
