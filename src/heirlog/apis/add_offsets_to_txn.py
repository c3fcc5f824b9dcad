"""AddOffsetsToTxn (key 25): the offsets of a group take part in a transaction (KIP-98).

v2 PRODUCER_FENCED, v3 flexible, v4 TRANSACTION_ABORTABLE. What is added is the group's partition of
`__consumer_offsets`. The rules are in `broker.transactions.add_partitions`.

A producer may be the first that needs that topic: clients look for the coordinator of the group only after this, and
kafkajs does not repeat the request. So it waits while the topic is created. (Apache Kafka adds the partition that the
group would have by the broker's own configuration. If the topic then gets another number of partitions, or does not
exist when the transaction ends, the offsets of the group are not part of the transaction.)
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import Coordinates, CreatesTopics, OnBroker
from heirlog.broker.transactions.coordinator import FENCED_IN_OTHERS, known_to
from heirlog.broker.transactions.state import ProducerIdAndEpoch
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.topic_name import OFFSETS_TOPIC
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


class Node(OnBroker[Coordinates], CreatesTopics, Protocol):
    pass


def guard(call: Call[AddOffsetsToTxnRequest, AddOffsetsToTxnResponse]) -> Reply[AddOffsetsToTxnResponse]:
    if not call.may(ResourceType.TRANSACTIONAL_ID, call.request.transactional_id):
        return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not call.may(ResourceType.GROUP, call.request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return call.handle()


def handle(node: Node, request: AddOffsetsToTxnRequest, context: Context) -> Reply[AddOffsetsToTxnResponse]:
    pending: Pending[AddOffsetsToTxnResponse] = Pending()
    if node.broker.groups.partition_of(request.group_id) is None:
        node.create_missing_topic(OFFSETS_TOPIC).then(lambda _: _add(node, request, context, pending))
    else:
        _add(node, request, context, pending)
    return pending


def _add(
    node: Node, request: AddOffsetsToTxnRequest, context: Context, pending: Pending[AddOffsetsToTxnResponse]
) -> None:
    def answer(code: ErrorCode) -> None:
        known = known_to(code, context.api_version, FENCED_IN_OTHERS)
        pending.complete(AddOffsetsToTxnResponse(error_code=known))

    index = node.broker.groups.partition_of(request.group_id)
    if index is None:
        answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    node.broker.transactions.add_partitions(request.transactional_id, producer, [(OFFSETS_TOPIC, index)], 0, answer)


API = Api(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    broker=Served(
        (0, 4),
        handle,
        needs=(
            Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
            Need(AclOperation.READ, ResourceType.GROUP),
        ),
        guard=guard,
    ),
)
