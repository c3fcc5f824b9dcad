"""DeleteTopics (key 20): the active controller executes it, brokers forward it (KIP-4, KIP-590).

v1-3 by name, v4 flexible, v5 error messages, v6 by name or topic id. The rules are in `controller.topics`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Need, Served
from heirlog.apis.common.call import Call, changed, without
from heirlog.apis.common.mutations import ChangesPartitions, within_quota
from heirlog.apis.common.ports import OnController
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.controller.topics import delete_topics
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from heirlog.protocol.types import ZERO_UUID

STRICT_VERSION = 5
CLUSTER, TOPIC = ResourceType.CLUSTER, ResourceType.TOPIC


def refused(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    asked: list[tuple[str | None, bytes]] = [(topic.name, topic.topic_id) for topic in request.topics]
    asked += [(name, ZERO_UUID) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic_id, error_code=code, error_message=sentence(code)
            )
            for name, topic_id in asked
        ]
    )


def guard(call: Call[DeleteTopicsRequest, DeleteTopicsResponse]) -> Reply[DeleteTopicsResponse]:
    """DELETE on the cluster, or on each topic. Only a client that may describe a topic gets the name of its id.

    Only valid elements are judged here; the handler refuses the others for every client.
    """
    request = call.request
    if call.may(CLUSTER, is_denial=False) or not call.port.config["delete.topic.enable"]:
        return call.handle()
    names = Counter([*request.topic_names, *(topic.name for topic in request.topics if topic.name is not None)])
    ids = Counter(topic.topic_id for topic in request.topics if topic.name is None)
    denied = []
    allowed_names = []
    for name in request.topic_names:
        if names[name] == 1 and not _may_delete_named(call, name):
            denied.append(_not_deleted(call, name, ZERO_UUID))
        else:
            allowed_names.append(name)
    allowed = []
    for topic in request.topics:
        known = topic.name
        if known is None:
            known = call.topic_name(topic.topic_id) if ids[topic.topic_id] == 1 else None
            is_denied = known is not None and not call.may(TOPIC, known)
        else:
            is_valid = names[known] == 1 and topic.topic_id == ZERO_UUID
            is_denied = is_valid and not _may_delete_named(call, known)
        if is_denied and known is not None:
            denied.append(_not_deleted(call, known, topic.topic_id))
        else:
            allowed.append(topic)
    if not denied:
        return call.handle()
    if not allowed and not allowed_names:
        return DeleteTopicsResponse(responses=denied)
    answer = call.handle(without(request, topics=allowed, topic_names=allowed_names))
    return changed(answer, lambda response: response.responses.extend(denied))


def _may_delete_named(call: Call[DeleteTopicsRequest, DeleteTopicsResponse], name: str) -> bool:
    return call.may_also(AclOperation.DESCRIBE, TOPIC, name) and call.may(TOPIC, name)


def _not_deleted(
    call: Call[DeleteTopicsRequest, DeleteTopicsResponse], name: str, topic_id: bytes
) -> DeleteTopicsResponse.DeletableTopicResult:
    """Named as in the request. A topic that the client may describe and that does not exist is unknown."""
    is_seen = call.may_also(AclOperation.DESCRIBE, TOPIC, name)
    if topic_id == ZERO_UUID and is_seen and name not in call.port.image.topic_ids:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    shown = name if is_seen or topic_id == ZERO_UUID else None
    return DeleteTopicsResponse.DeletableTopicResult(
        name=shown, topic_id=topic_id, error_code=code, error_message=sentence(code)
    )


def handle(
    node: OnController[ChangesPartitions], request: DeleteTopicsRequest, context: Context
) -> Reply[DeleteTopicsResponse]:
    controller = node.controller
    return within_quota(
        node,
        context,
        STRICT_VERSION,
        lambda take: controller.submit(
            lambda: delete_topics(controller.image, controller.static, request, take), partial(refused, request)
        ),
    )


API = Api(
    key=ApiKey.DELETE_TOPICS,
    broker=Forwarded((1, 6)),
    controller=Served(
        (1, 6),
        handle,
        needs=(Need(AclOperation.DELETE, CLUSTER), Need(AclOperation.DELETE, TOPIC)),
        also=(Need(AclOperation.DESCRIBE, TOPIC),),
        guard=guard,
    ),
    refused=refused,
    is_change=True,
)
