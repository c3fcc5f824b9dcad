"""FindCoordinator (key 10): who coordinates a group or a transactional id.

v0 groups, v1 key types and messages, v3 flexible, v4 several keys at once, v5-6 nothing that changes the fields.
Without an error the message is "NONE", and empty from v4 on, as on Apache Kafka.
The coordinator of a group leads its partition of `__consumer_offsets`, that of a transactional id its partition of
`__transaction_state`. The first request creates the topic. Until it has leaders the answer is
COORDINATOR_NOT_AVAILABLE, and clients ask again.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.describe import leader_error
from heirlog.apis.common.ports import Coordinates, CreatesTopics, HasImage, OnBroker
from heirlog.broker.groups.coordinator import NAME_MAX_CHARACTERS, group_id_error
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from heirlog.protocol.types import CoordinatorType

BATCHED = 4
"""First version that asks for several keys."""

Coordinator = FindCoordinatorResponse.Coordinator


class Node(OnBroker[Coordinates], HasImage, CreatesTopics, Protocol):
    pass


def guard(call: Call[FindCoordinatorRequest, FindCoordinatorResponse]) -> Reply[FindCoordinatorResponse]:
    request = call.request
    code = (
        ErrorCode.GROUP_AUTHORIZATION_FAILED
        if request.key_type == CoordinatorType.GROUP
        else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    )
    if call.context.api_version < BATCHED:
        if _may_find(call, request.key_type, request.key):
            return call.handle()
        return FindCoordinatorResponse(error_code=code, error_message=sentence(code), node_id=-1, host="", port=-1)
    keys = request.coordinator_keys
    allowed, denied = parted(keys, lambda key: _may_find(call, request.key_type, key))
    if not denied:
        return call.handle()
    refused = [
        Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=sentence(code))
        for key in denied
    ]
    answer: Reply[FindCoordinatorResponse] = FindCoordinatorResponse()
    if allowed:
        answer = call.handle(without(request, coordinator_keys=allowed))
    return changed(answer, lambda response: response.coordinators.extend(refused))


def _may_find(call: Call[FindCoordinatorRequest, FindCoordinatorResponse], key_type: int, key: str) -> bool:
    """The handler refuses other kinds of keys for every client."""
    if key_type == CoordinatorType.GROUP:
        return call.may(ResourceType.GROUP, key)
    return key_type != CoordinatorType.TRANSACTION or call.may(ResourceType.TRANSACTIONAL_ID, key)


def handle(node: Node, request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.api_version >= BATCHED else [request.key]
    found = [_found(node, request.key_type, key, context.listener) for key in keys]
    if context.api_version >= BATCHED:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    if context.api_version > 0 and only.error_code == ErrorCode.NONE:
        only.error_message = ErrorCode.NONE.name
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _found(node: Node, key_type: int, key: str, listener: str) -> FindCoordinatorResponse.Coordinator:
    try:
        return _coordinator(node, key_type, key, listener)
    except KafkaError as error:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message)


def _coordinator(node: Node, key_type: int, key: str, listener: str) -> FindCoordinatorResponse.Coordinator:
    """Raises KafkaError."""
    if key_type == CoordinatorType.TRANSACTION:
        topic, index = TRANSACTIONS_TOPIC, node.broker.transactions.partition_of(key)
    elif key_type == CoordinatorType.GROUP:
        wrong = group_id_error(key)
        if wrong is not None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, wrong)
        topic, index = OFFSETS_TOPIC, node.broker.groups.partition_of(key)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown")
    if index is None:
        node.create_missing_topics([topic])
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created")
    state = node.image.partition_named(topic, index)
    if state is None or leader_error(node.image, state, listener) is not ErrorCode.NONE:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic}-{index} has no leader now")
    leader = node.image.brokers[state.leader]
    endpoint = leader.endpoint(listener)
    assert endpoint is not None, "leader_error has looked"
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


API = Api(
    key=ApiKey.FIND_COORDINATOR,
    broker=Served(
        (0, 6),
        handle,
        needs=(
            Need(AclOperation.DESCRIBE, ResourceType.GROUP),
            Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
        ),
        guard=guard,
    ),
    limits=(Limit(NAME_MAX_CHARACTERS, "characters of a group id", ErrorCode.INVALID_GROUP_ID),),
)
