"""CreatePartitions (key 37): the active controller executes it, brokers forward it (KIP-195, KIP-590).

v0-1, v2 flexible, v3 throttling errors. The rules are in `controller.create_partitions`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.mutations import ChangesPartitions, within_quota
from heirlog.apis.common.ports import OnController
from heirlog.context import Context, Reply
from heirlog.controller.create_partitions import create_partitions
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse

STRICT_VERSION = 3


def refused(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_not_created(topic, code) for topic in request.topics])


def _not_created(
    topic: CreatePartitionsRequest.CreatePartitionsTopic, code: ErrorCode
) -> CreatePartitionsResponse.CreatePartitionsTopicResult:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=topic.name, error_code=code, error_message=sentence(code)
    )


def guard(call: Call[CreatePartitionsRequest, CreatePartitionsResponse]) -> Reply[CreatePartitionsResponse]:
    """A name that the request has twice is invalid for every client."""
    times = Counter(topic.name for topic in call.request.topics)
    allowed, denied = parted(
        call.request.topics, lambda topic: times[topic.name] > 1 or call.may(ResourceType.TOPIC, topic.name)
    )
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return split(call, "topics", "results", allowed, denied, lambda topic: _not_created(topic, code))


def handle(
    node: OnController[ChangesPartitions], request: CreatePartitionsRequest, context: Context
) -> Reply[CreatePartitionsResponse]:
    controller = node.controller
    return within_quota(
        node,
        context,
        STRICT_VERSION,
        lambda take: controller.submit(
            lambda: create_partitions(controller.image, controller.static, request, controller.env.random, take),
            partial(refused, request),
        ),
    )


API = Api(
    key=ApiKey.CREATE_PARTITIONS,
    broker=Forwarded((0, 3)),
    controller=Served((0, 3), handle, needs=(Need(AclOperation.ALTER, ResourceType.TOPIC),), guard=guard),
    refused=refused,
    is_change=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
)
