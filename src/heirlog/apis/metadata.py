"""Metadata (key 3): brokers, and leaders and replicas of topics, from this broker's committed image.

v0 an empty list means all topics, from v1 null does; v1 racks and the controller, v2 cluster id, v3 throttle time, v4
automatic creation may be refused by the client, v5 offline replicas, v7 leader epochs, v8 authorized operations, v9
flexible, v10 topic ids, v12 topics by id, v13 an error for the whole answer. It carries no ELR (that is
DescribeTopicPartitions).
Trap: v10 and v11 have the id field and a nullable name in the request, but not yet in their meaning, and their answer
has no null name: such a request is refused as a whole with INVALID_REQUEST. So is, from v12, one without any id that
has no name for a topic.
A missing topic is created if broker and client allow it; this answer still says UNKNOWN_TOPIC_OR_PARTITION, and the
client asks again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.cluster_operations import cluster_operations
from heirlog.apis.common.describe import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    PartitionStates,
    live_brokers,
)
from heirlog.apis.common.ports import CreatesTopics, Describes, HasCluster, NamesBrokers, OnBroker
from heirlog.broker.lost_leaders import LostLeaders
from heirlog.context import Context, Reply
from heirlog.metadata.acls import NOT_ASKED, AclOperation, ResourceType
from heirlog.metadata.image import Image
from heirlog.metadata.state import TopicImage
from heirlog.metadata.topic_name import INTERNAL_TOPICS, topic_name_error
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.types import ZERO_UUID, BrokerId, Uuid

BY_ID = 12
"""First version that asks for topics by their id."""

Topic = MetadataResponse.MetadataResponseTopic


class Broker(Protocol):
    @property
    def lost_leaders(self) -> LostLeaders: ...


class Node(Describes, HasCluster, NamesBrokers, CreatesTopics, OnBroker[Broker], Protocol):
    pass


def guard(call: Call[MetadataRequest, MetadataResponse]) -> Reply[MetadataResponse]:
    """What the client must not describe does not exist for it.

    A topic that the request names gets TOPIC_AUTHORIZATION_FAILED and no id, whether it exists or not; the list of all
    topics leaves it out. An id is not a secret: a known one that must not be described is refused under the id.
    """
    request = call.request
    named = _named(request, call.context.api_version)
    if named is None:
        return changed(call.handle(), lambda response: _finish(call, response, [], hide=True))
    by_id = any(asked.topic_id != ZERO_UUID or asked.name is None for asked in named)
    if by_id and call.context.api_version < BY_ID:
        # refused as a whole for every client
        return call.handle()
    allowed, denied = parted(
        named,
        lambda asked: (
            call.may_topic("", asked.topic_id, by_id=True) if by_id else _may_see(call, request, asked.name or "")
        ),
    )
    refusals = {
        (asked.name, asked.topic_id): Topic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            name=None if by_id else asked.name,
            topic_id=asked.topic_id if by_id else ZERO_UUID,
        )
        for asked in denied
    }
    return changed(
        call.handle(without(request, topics=allowed)),
        lambda response: _finish(call, response, list(refusals.values()), hide=False),
    )


def _may_see(call: Call[MetadataRequest, MetadataResponse], request: MetadataRequest, name: str) -> bool:
    """Not a topic that this request would have to create without the permission for it."""
    if not call.may(ResourceType.TOPIC, name):
        return False
    creates = request.allow_auto_topic_creation and call.port.config["auto.create.topics.enable"]
    return not creates or name in call.port.image.topic_ids or _may_create(call, name)


def _may_create(call: Call[MetadataRequest, MetadataResponse], name: str) -> bool:
    return call.may_also(AclOperation.CREATE, ResourceType.CLUSTER) or call.may_also(
        AclOperation.CREATE, ResourceType.TOPIC, name
    )


def _finish(
    call: Call[MetadataRequest, MetadataResponse], response: MetadataResponse, refusals: list[Topic], hide: bool
) -> None:
    topics = response.topics or []
    if hide:
        topics = [topic for topic in topics if call.may(ResourceType.TOPIC, topic.name or "", is_denial=False)]
    for topic in topics:
        if topic.topic_authorized_operations != NOT_ASKED and topic.name is not None:
            topic.topic_authorized_operations = call.operations(ResourceType.TOPIC, topic.name)
    response.topics = [*topics, *refusals]
    if response.cluster_authorized_operations != NOT_ASKED:
        response.cluster_authorized_operations = cluster_operations(call)


def handle(node: Node, request: MetadataRequest, context: Context) -> Reply[MetadataResponse]:
    if _is_meaningless(request, context.api_version):
        return _refused(request)
    return node.broker.lost_leaders.when_decided(
        lambda brokers: _is_led_by(brokers, node.image, request, context.api_version),
        lambda: _answer(node, request, context),
    )


def _named(request: MetadataRequest, version: int) -> list[MetadataRequest.MetadataRequestTopic] | None:
    """None: all topics are asked about."""
    return request.topics or (None if request.topics is None or version == 0 else [])


def _is_led_by(brokers: Collection[BrokerId], image: Image, request: MetadataRequest, version: int) -> bool:
    """Whether one of these leads a partition that is asked about."""
    named = _named(request, version)
    if named is None:
        return True
    asked = (
        topic.topic_id if topic.topic_id != ZERO_UUID else image.topic_ids.get(topic.name or "") for topic in named
    )
    return any(
        state.leader in brokers
        for topic_id in asked
        for state in (image.partitions.get(Uuid(topic_id), {}) if topic_id is not None else {}).values()
    )


def _answer(node: Node, request: MetadataRequest, context: Context) -> MetadataResponse:
    missing: list[str] = []
    topics = _topics(node.image, request, context, missing)
    if missing and request.allow_auto_topic_creation and node.config["auto.create.topics.enable"]:
        node.create_missing_topics(missing, context)
    return MetadataResponse(
        brokers=_brokers(node, request, context),
        cluster_id=node.cluster_id,
        controller_id=node.any_live_broker(),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _is_meaningless(request: MetadataRequest, version: int) -> bool:
    topics = request.topics or ()
    has_id = any(asked.topic_id != ZERO_UUID for asked in topics)
    is_nameless = any(asked.name is None for asked in topics)
    return (is_nameless or has_id) if version < BY_ID else (is_nameless and not has_id)


def _refused(request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            Topic(error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id)
            for asked in request.topics or ()
        ]
    )


def _brokers(node: Node, request: MetadataRequest, context: Context) -> list[MetadataResponse.MetadataResponseBroker]:
    """One that was just fenced only for who looks for leaders: an admin client asks every broker that is listed."""
    just_fenced = node.broker.lost_leaders.listed() if _named(request, context.api_version) else frozenset()
    return [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker, endpoint in live_brokers(node.image, node.config.node_id, context.listener, just_fenced)
    ]


def _topics(
    image: Image, request: MetadataRequest, context: Context, missing: list[str]
) -> list[MetadataResponse.MetadataResponseTopic]:
    """Each topic once, however often it was requested. If a request has ids, its names are ignored."""
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    named, states = _named(request, context.api_version), PartitionStates(image, context.listener)
    if named is None:
        return [
            _described(image, image.topics[image.topic_ids[name]], states, operations)
            for name in sorted(image.topic_ids)
        ]
    found = []
    ids = dict.fromkeys(Uuid(asked.topic_id) for asked in named if asked.topic_id != ZERO_UUID)
    for topic_id in ids:
        topic = image.topics.get(topic_id)
        if topic is None:
            found.append(Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id))
        else:
            found.append(_described(image, topic, states, operations))
    if ids:
        return found
    for name in dict.fromkeys(asked.name for asked in named if asked.name is not None):
        known = image.topic_ids.get(name)
        if known is None:
            found.append(_unknown(name, operations, missing))
        else:
            found.append(_described(image, image.topics[known], states, operations))
    return found


def _unknown(name: str, operations: int, missing: list[str]) -> MetadataResponse.MetadataResponseTopic:
    """With the operations that would be allowed: kafka-python's admin client cannot read an answer without."""
    malformed = topic_name_error(name) is not None
    if not malformed:
        missing.append(name)
    return Topic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if malformed else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=operations,
    )


def _described(
    image: Image, topic: TopicImage, states: PartitionStates, operations: int
) -> MetadataResponse.MetadataResponseTopic:
    partitions = []
    for index, state in sorted(image.partitions[topic.id].items()):
        error = states.leader_error(state)
        partitions.append(
            MetadataResponse.MetadataResponsePartition(
                error_code=error,
                partition_index=index,
                leader_id=state.leader if error == ErrorCode.NONE else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                offline_replicas=states.offline_replicas(state),
            )
        )
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


API = Api(
    key=ApiKey.METADATA,
    broker=Served(
        (0, 13),
        handle,
        needs=(Need(AclOperation.DESCRIBE, ResourceType.TOPIC),),
        also=(
            Need(AclOperation.CREATE, ResourceType.CLUSTER),
            Need(AclOperation.CREATE, ResourceType.TOPIC),
            Need(AclOperation.DESCRIBE, ResourceType.CLUSTER),
        ),
        guard=guard,
    ),
    has_large_answer=True,
)
