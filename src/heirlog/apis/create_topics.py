"""CreateTopics (key 19): the active controller executes it, brokers forward it (KIP-4, KIP-590).

v2-4 partitions and assignments, v5 flexible and the configs in the answer, v6 throttling errors, v7 topic ids.
The rules are in `controller.topics`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.call import Call, changed, parted, split
from heirlog.apis.common.mutations import ChangesPartitions, within_quota
from heirlog.apis.common.ports import OnController
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.controller.topics import create_topics
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from heirlog.protocol.types import METADATA_TOPIC

CLUSTER, TOPIC = ResourceType.CLUSTER, ResourceType.TOPIC
STRICT_VERSION = 6
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def refused(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_not_created(topic, code) for topic in request.topics])


def _not_created(
    topic: CreateTopicsRequest.CreatableTopic, code: ErrorCode
) -> CreateTopicsResponse.CreatableTopicResult:
    return CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=code, error_message=sentence(code))


def guard(call: Call[CreateTopicsRequest, CreateTopicsResponse]) -> Reply[CreateTopicsResponse]:
    """The cluster or each topic must allow it. Only a client that may describe them sees the new configurations.

    A name that the request has twice is invalid for every client, and so is the name of the metadata log.
    """
    request = call.request
    times = Counter(topic.name for topic in request.topics)
    has_cluster = call.may(CLUSTER, is_denial=False)
    allowed, denied = parted(
        request.topics,
        lambda topic: (
            has_cluster or times[topic.name] > 1 or topic.name == METADATA_TOPIC or call.may(TOPIC, topic.name)
        ),
    )
    answer = split(call, "topics", "topics", allowed, denied, lambda topic: _not_created(topic, DENIED))
    return changed(answer, partial(_hide_configs, call))


def _hide_configs(call: Call[CreateTopicsRequest, CreateTopicsResponse], response: CreateTopicsResponse) -> None:
    for topic in response.topics:
        if topic.error_code == ErrorCode.NONE and not call.may_also(AclOperation.DESCRIBE_CONFIGS, TOPIC, topic.name):
            topic.topic_config_error_code = DENIED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


def handle(
    node: OnController[ChangesPartitions], request: CreateTopicsRequest, context: Context
) -> Reply[CreateTopicsResponse]:
    controller = node.controller
    return within_quota(
        node,
        context,
        STRICT_VERSION,
        lambda take: controller.submit(
            lambda: create_topics(controller.image, controller.static, request, controller.env.random, take),
            partial(refused, request),
        ),
    )


API = Api(
    key=ApiKey.CREATE_TOPICS,
    broker=Forwarded((2, 7)),
    controller=Served(
        (2, 7),
        handle,
        needs=(Need(AclOperation.CREATE, CLUSTER), Need(AclOperation.CREATE, TOPIC)),
        also=(Need(AclOperation.DESCRIBE_CONFIGS, TOPIC),),
        guard=guard,
    ),
    refused=refused,
    is_change=True,
    has_large_answer=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
)
