"""ListTransactions (key 66): the transactions that this broker coordinates (KIP-664).

v1 a filter by duration (KIP-994), v2 a pattern of transactional ids (KIP-1152). The rules are in
`broker.transactions.describe`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed
from heirlog.apis.common.ports import CoordinatesTransactions, HasEnv, OnBroker
from heirlog.broker.transactions.describe import list_transactions
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import ListTransactionsRequest, ListTransactionsResponse


class Node(OnBroker[CoordinatesTransactions], HasEnv, Protocol):
    pass


def guard(call: Call[ListTransactionsRequest, ListTransactionsResponse]) -> Reply[ListTransactionsResponse]:
    """Only the transactions that the client may describe."""

    def keep(response: ListTransactionsResponse) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if call.may(ResourceType.TRANSACTIONAL_ID, state.transactional_id, is_denial=False)
        ]

    return changed(call.handle(), keep)


def handle(node: Node, request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    return list_transactions(node.broker.transactions, request, node.env.wall_ms())


API = Api(
    key=ApiKey.LIST_TRANSACTIONS,
    broker=Served((0, 2), handle, needs=(Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),), guard=guard),
)
