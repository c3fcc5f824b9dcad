"""AddPartitionsToTxn (key 24): partitions that take part in a transaction (KIP-98).

v2 PRODUCER_FENCED, v3 flexible. Clients stay at v3: v4 is for brokers, with several transactions and the choice to look
them up only (KIP-890), v5 TRANSACTION_ABORTABLE. The rules are in `broker.transactions.partition_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import CoordinatesTransactions, HasImage, OnBroker
from heirlog.broker.transactions.partition_requests import BATCHED, add_partitions_to_txn
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse


class Node(OnBroker[CoordinatesTransactions], HasImage, Protocol):
    pass


def refused(request: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse:
    """The error of the whole answer for brokers, of each partition for clients."""
    nested = AddPartitionsToTxnResponse
    return nested(
        error_code=code,
        results_by_topic_v3_and_below=[
            nested.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    nested.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ],
    )


def guard(call: Call[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse]) -> Reply[AddPartitionsToTxnResponse]:
    if call.context.api_version >= BATCHED:
        if call.may(ResourceType.CLUSTER):
            return call.handle()
        return call.refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not call.may(ResourceType.TRANSACTIONAL_ID, call.request.v3_and_below_transactional_id):
        return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return call.handle_refusing(lambda topic: not call.may(ResourceType.TOPIC, topic))


def handle(node: Node, request: AddPartitionsToTxnRequest, context: Context) -> Reply[AddPartitionsToTxnResponse]:
    return add_partitions_to_txn(node.broker.transactions, node.image, request, context)


API = Api(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    broker=Served(
        (0, 5),
        handle,
        needs=(
            Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
            Need(AclOperation.WRITE, ResourceType.TOPIC),
            Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),
        ),
        guard=guard,
    ),
    refused=refused,
)
