"""FindCoordinator (key 10): who coordinates a group or a transactional id.

v0 groups, v1 key types and messages, v3 flexible, v4 several keys at once, v5-6 nothing that changes the fields.
Without an error the message is "NONE", and empty from v4 on, as on Apache Kafka.
A group's coordinator leads its partition of `__consumer_offsets`. The first question creates that topic; until it has
leaders the answer is COORDINATOR_NOT_AVAILABLE, and clients ask again. A transactional id gets INVALID_REQUEST, which
no client retries: transactions are not there yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.broker.groups.coordinator import NAME_MAX_CHARACTERS
from heirlog.context import Context
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.node.describe import leader_error
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node

GROUP = 0
TRANSACTION = 1
BATCHED = 4
"""First version that asks for several keys."""

Coordinator = FindCoordinatorResponse.Coordinator


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
    if key_type == TRANSACTION:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "transactions are not there yet: use an idempotent producer without a transactional id",
        )
    if key_type != GROUP:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"coordinator key type {key_type} is unknown")
    if len(key) > NAME_MAX_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, f"a group id has at most {NAME_MAX_CHARACTERS} characters")
    index = node.broker.groups.partition_of(key)
    if index is None:
        node.create_missing_topics([OFFSETS_TOPIC])
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} is being created")
    state = node.image.partition_named(OFFSETS_TOPIC, index)
    if state is None or leader_error(node.image, state, listener) is not ErrorCode.NONE:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC}-{index} has no leader now")
    leader = node.image.brokers[state.leader]
    endpoint = leader.endpoint(listener)
    assert endpoint is not None, "leader_error has looked"
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")
