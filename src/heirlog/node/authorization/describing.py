"""Guards of Metadata and DescribeTopicPartitions: what the client may not describe is not there.

Named, it is answered with TOPIC_AUTHORIZATION_FAILED and without its id, whether it exists or not; in a list of
everything it is left out. An id is no secret: a known one that may not be described is refused under the id.
"""

from __future__ import annotations

from typing import Any

from heirlog.metadata.acls import Operation, ResourceType
from heirlog.node.authorization.call import Call, changed, parted, without
from heirlog.node.authorization.cluster import cluster_operations
from heirlog.node.describe import NOT_ASKED
from heirlog.node.handlers.metadata import BY_ID
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from heirlog.protocol.types import ZERO_UUID

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

Topic = MetadataResponse.MetadataResponseTopic
DescribedTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Cursor = DescribeTopicPartitionsRequest.Cursor


def metadata(call: Call) -> Any:
    request: MetadataRequest = call.request
    if request.topics is None or (call.context.api_version == 0 and not request.topics):
        return changed(call.handle(), lambda response: _finish(call, response, [], hide=True))
    by_id = any(asked.topic_id != ZERO_UUID or asked.name is None for asked in request.topics)
    if by_id and call.context.api_version < BY_ID:
        # refused as a whole, whoever asks
        return call.handle()
    left, denied = parted(
        request.topics,
        lambda asked: _may_see_id(call, asked.topic_id) if by_id else _may_see_name(call, request, asked.name or ""),
    )
    refusals = {
        (asked.name, asked.topic_id): Topic(
            error_code=DENIED, name=None if by_id else asked.name, topic_id=asked.topic_id if by_id else ZERO_UUID
        )
        for asked in denied
    }
    return changed(
        call.handle(without(request, topics=left)),
        lambda response: _finish(call, response, list(refusals.values()), hide=False),
    )


def _may_see_id(call: Call, topic_id: bytes) -> bool:
    """True also for an id that nobody knows: the handler says so."""
    name = call.topic_name(topic_id)
    return name is None or call.may(TOPIC, name)


def _may_see_name(call: Call, request: MetadataRequest, name: str) -> bool:
    """Not what would have to be created, by somebody who may not."""
    if not call.may(TOPIC, name):
        return False
    creates = request.allow_auto_topic_creation and call.node.config["auto.create.topics.enable"]
    return not creates or name in call.node.image.topic_ids or _may_create(call, name)


def _may_create(call: Call, name: str) -> bool:
    return call.may_also(Operation.CREATE, CLUSTER) or call.may_also(Operation.CREATE, TOPIC, name)


def _finish(call: Call, response: MetadataResponse, refusals: list[Topic], hide: bool) -> None:
    topics = response.topics or []
    if hide:
        topics = [topic for topic in topics if call.may(TOPIC, topic.name or "", is_denial=False)]
    for topic in topics:
        if topic.topic_authorized_operations != NOT_ASKED and topic.name is not None:
            topic.topic_authorized_operations = call.operations(TOPIC, topic.name)
    response.topics = [*topics, *refusals]
    if response.cluster_authorized_operations != NOT_ASKED:
        response.cluster_authorized_operations = cluster_operations(call)


def describe_topic_partitions(call: Call) -> Any:
    request: DescribeTopicPartitionsRequest = call.request
    cursor = request.cursor
    asked = sorted({topic.name for topic in request.topics})
    if cursor is not None and (cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)):
        # a cursor that cannot be followed is refused, whoever asks
        return call.handle()
    following = "" if cursor is None else cursor.topic_name
    names = [name for name in asked or sorted(call.node.image.topic_ids) if name >= following]
    seen, hidden = parted(names, lambda name: call.may(TOPIC, name, is_denial=bool(asked)))
    hidden = hidden if asked else []
    if not seen:
        return DescribeTopicPartitionsResponse(topics=[_hidden(name) for name in hidden])
    smaller = without(
        request,
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in seen],
        # the cursor's topic may not be seen any more, or be gone: the next one starts from its beginning
        cursor=cursor if following in seen else None,
    )

    def finish(response: DescribeTopicPartitionsResponse) -> None:
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_ASKED:
                topic.topic_authorized_operations = call.operations(TOPIC, topic.name or "")
        # as on Kafka on every page, from the cursor on: whoever reads pages takes a topic that comes again for the same
        response.topics += [_hidden(name) for name in hidden]

    return changed(call.handle(smaller), finish)


def _hidden(name: str) -> DescribedTopic:
    return DescribedTopic(error_code=DENIED, name=name, topic_id=ZERO_UUID)
