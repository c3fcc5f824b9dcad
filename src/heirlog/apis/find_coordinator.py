"""FindCoordinator (key 10): who coordinates a group, a transactional id, or a share partition.

v0 groups, v1 key types and messages, v3 flexible, v4 several keys at once, v5 nothing that changes the
fields, v6 share partitions, for brokers.
Without an error the message is "NONE", and empty from v4 on, as on Apache Kafka.
The coordinator of a group leads its partition of `__consumer_offsets`, that of a transactional id its partition of
`__transaction_state`, that of a share partition (`group:topic id:partition`) its partition of `__share_group_state`.
The first request creates the topic, and is answered once this broker knows its leaders, but after a second at the
latest. Without them the answer is COORDINATOR_NOT_AVAILABLE, and clients ask again: librdkafka only after a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, changed, parted, without
from heirlog.apis.common.describe import PartitionStates
from heirlog.apis.common.ports import Coordinates, CreatesTopics, HasImage, OnBroker
from heirlog.broker.groups.coordinator import NAME_MAX_CHARACTERS, group_id_error
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.topic_name import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from heirlog.protocol.types import CoordinatorType, uuid_from_text

BATCHED = 4
"""First version that asks for several keys."""
SHARE_PARTITIONS = 6
"""First version that asks for coordinators of share partitions."""

WAIT_MS = 1000
"""For the topic: other requests of the connection wait behind this one."""

Coordinator = FindCoordinatorResponse.Coordinator


class Node(OnBroker[Coordinates], HasImage, CreatesTopics, Protocol):
    pass


_DENIED: Final[Mapping[int, ErrorCode]] = {
    CoordinatorType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CoordinatorType.SHARE: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
}


def guard(call: Call[FindCoordinatorRequest, FindCoordinatorResponse]) -> Reply[FindCoordinatorResponse]:
    request = call.request
    code = _DENIED.get(request.key_type, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
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
    if key_type == CoordinatorType.SHARE:
        return call.may(ResourceType.CLUSTER)
    return key_type != CoordinatorType.TRANSACTION or call.may(ResourceType.TRANSACTIONAL_ID, key)


def handle(node: Node, request: FindCoordinatorRequest, context: Context) -> Reply[FindCoordinatorResponse]:
    missing = _missing_topic(node, request, context)
    if missing is None:
        return _answer(node, request, context)
    created = node.create_missing_topic(missing, WAIT_MS)
    pending: Pending[FindCoordinatorResponse] = Pending(created.abandon)
    created.then(lambda _: pending.complete(_answer(node, request, context)))
    return pending


def _missing_topic(node: Node, request: FindCoordinatorRequest, context: Context) -> str | None:
    """The topic of the coordinators, if it does not exist and one of the keys may have one."""
    for key in _keys(request, context):
        try:
            topic, index = _place(node, request.key_type, key, context)
        except KafkaError:
            continue
        return topic if index is None else None
    return None


def _keys(request: FindCoordinatorRequest, context: Context) -> list[str]:
    return request.coordinator_keys if context.api_version >= BATCHED else [request.key]


def _answer(node: Node, request: FindCoordinatorRequest, context: Context) -> FindCoordinatorResponse:
    found = [_found(node, request.key_type, key, context) for key in _keys(request, context)]
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


def _found(node: Node, key_type: int, key: str, context: Context) -> FindCoordinatorResponse.Coordinator:
    try:
        return _coordinator(node, key_type, key, context)
    except KafkaError as error:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message)


def _place(node: Node, key_type: int, key: str, context: Context) -> tuple[str, int | None]:
    """The topic of the coordinators, and the partition for the key: None while it does not exist. Raises KafkaError."""
    if key_type == CoordinatorType.TRANSACTION:
        return TRANSACTIONS_TOPIC, node.broker.transactions.partition_of(key)
    if key_type == CoordinatorType.GROUP:
        wrong = group_id_error(key)
        if wrong is not None:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, wrong)
        return OFFSETS_TOPIC, node.broker.groups.partition_of(key)
    if key_type == CoordinatorType.SHARE and context.api_version >= SHARE_PARTITIONS:
        if not _is_share_partition(key):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} is not of the form group:topic id:partition")
        return SHARE_STATE_TOPIC, node.broker.share_coordinator.partition_of(key)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown")


def _coordinator(node: Node, key_type: int, key: str, context: Context) -> FindCoordinatorResponse.Coordinator:
    """Raises KafkaError."""
    topic, index = _place(node, key_type, key, context)
    if index is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created")
    state = node.image.partition_named(topic, index)
    states = PartitionStates(node.image, context.listener)
    if state is None or states.leader_error(state) is not ErrorCode.NONE:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic}-{index} has no leader now")
    leader = node.image.brokers[state.leader]
    endpoint = leader.endpoint(context.listener)
    assert endpoint is not None, "leader_error has looked"
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


def _is_share_partition(key: str) -> bool:
    """Whether it is of the form `group:topic id:partition`; a group id may have colons itself."""
    parts = key.rsplit(":", 2)
    try:
        uuid_from_text(parts[-2])
        return len(parts) == 3 and bool(parts[0]) and int(parts[2]) >= 0
    except (ValueError, IndexError):
        return False


API = Api(
    key=ApiKey.FIND_COORDINATOR,
    broker=Served(
        (0, 6),
        handle,
        needs=(
            Need(AclOperation.DESCRIBE, ResourceType.GROUP),
            Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
            Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
        ),
        guard=guard,
    ),
    limits=(Limit(NAME_MAX_CHARACTERS, "characters of a group id", ErrorCode.INVALID_GROUP_ID),),
)
