"""DescribeTransactions (key 65): state, producer and partitions of transactional ids (KIP-664).

v0 only. A topic that the client may not describe is left out. The rules are in `broker.transactions.describe`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed, parted, split
from heirlog.apis.common.ports import CoordinatesTransactions, OnBroker
from heirlog.broker.transactions.describe import describe_transactions
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeTransactionsRequest, DescribeTransactionsResponse


def guard(call: Call[DescribeTransactionsRequest, DescribeTransactionsResponse]) -> Reply[DescribeTransactionsResponse]:
    allowed, denied = parted(call.request.transactional_ids, lambda name: call.may(ResourceType.TRANSACTIONAL_ID, name))

    def keep(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            state.topics = [
                topic for topic in state.topics if call.may(ResourceType.TOPIC, topic.topic, is_denial=False)
            ]

    answer = split(call, "transactional_ids", "transaction_states", allowed, denied, _denied)
    return changed(answer, keep)


def _denied(transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    )


def handle(
    node: OnBroker[CoordinatesTransactions], request: DescribeTransactionsRequest, context: Context
) -> DescribeTransactionsResponse:
    return describe_transactions(node.broker.transactions, request)


API = Api(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    broker=Served(
        (0, 0),
        handle,
        needs=(
            Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
            Need(AclOperation.DESCRIBE, ResourceType.TOPIC),
        ),
        guard=guard,
    ),
)
