"""Metadata (key 3): brokers, and leaders and replicas of topics, from this broker's committed image.

v0 an empty list means all topics, from v1 null does; v1 racks and the controller, v2 cluster id, v4 automatic creation
may be refused by the client, v5 offline replicas, v7 leader epochs, v8 authorized operations, v9 flexible, v10 topic
ids, v12 topics by id, v13 an error for the whole answer. It carries no ELR (that is DescribeTopicPartitions).
Trap: v10 and v11 have the id field and a nullable name in the request, but not yet in their meaning, and their answer
has no null name: such a request is refused as a whole with INVALID_REQUEST. So is, from v12, one without any id that
has no name for a topic.
A missing topic is created if broker and client allow it; this answer still says UNKNOWN_TOPIC_OR_PARTITION, and the
client asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.metadata.image import Image
from heirlog.metadata.state import TopicState
from heirlog.metadata.topic_name import INTERNAL_TOPICS, topic_name_error
from heirlog.node.describe import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    leader_error,
    live_brokers,
    offline_replicas,
)
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import MetadataRequest, MetadataResponse
from heirlog.protocol.types import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from heirlog.node.node import Node

BY_ID = 12
"""First version that asks for topics by their id."""

Topic = MetadataResponse.MetadataResponseTopic


def handle(node: Node, request: MetadataRequest, context: Context) -> MetadataResponse:
    if _is_meaningless(request, context.api_version):
        return _refused(request)
    missing: list[str] = []
    topics = _topics(node.image, request, context, missing)
    if missing and request.allow_auto_topic_creation and node.config["auto.create.topics.enable"]:
        node.create_missing_topics(missing, context)
    return MetadataResponse(
        brokers=_brokers(node, context.listener),
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


def _brokers(node: Node, listener: str) -> list[MetadataResponse.MetadataResponseBroker]:
    return [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker, endpoint in live_brokers(node.image, node.config.node_id, listener)
    ]


def _topics(
    image: Image, request: MetadataRequest, context: Context, missing: list[str]
) -> list[MetadataResponse.MetadataResponseTopic]:
    """Each topic once, however often it was asked for. Where there are ids, names beside them count for nothing."""
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    if request.topics is None or (context.api_version == 0 and not request.topics):
        return [
            _described(image, image.topics[image.topic_ids[name]], context.listener, operations)
            for name in sorted(image.topic_ids)
        ]
    found = []
    ids = dict.fromkeys(Uuid(asked.topic_id) for asked in request.topics if asked.topic_id != ZERO_UUID)
    for topic_id in ids:
        topic = image.topics.get(topic_id)
        if topic is None:
            found.append(Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id))
        else:
            found.append(_described(image, topic, context.listener, operations))
    if ids:
        return found
    for name in dict.fromkeys(asked.name for asked in request.topics if asked.name is not None):
        known = image.topic_ids.get(name)
        if known is None:
            found.append(_unknown(name, operations, missing))
        else:
            found.append(_described(image, image.topics[known], context.listener, operations))
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
    image: Image, topic: TopicState, listener: str, operations: int
) -> MetadataResponse.MetadataResponseTopic:
    partitions = []
    for index, state in sorted(image.partitions[topic.id].items()):
        error = leader_error(image, state, listener)
        partitions.append(
            MetadataResponse.MetadataResponsePartition(
                error_code=error,
                partition_index=index,
                leader_id=state.leader if error == ErrorCode.NONE else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                offline_replicas=offline_replicas(image, state, listener),
            )
        )
    return Topic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=operations,
    )
