"""ListTransactions (key 66): the transactions that this broker coordinates (KIP-664).

v1 a filter by duration (KIP-994), v2 a pattern of transactional ids (KIP-1152). The rules are in
`broker.list_transactions`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call, changed
from heirlog.broker.list_transactions import list_transactions
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import ListTransactionsRequest, ListTransactionsResponse


def guard(call: Call[ListTransactionsRequest, ListTransactionsResponse]) -> Reply[ListTransactionsResponse]:
    """Only the transactions that the client may describe."""

    def keep(response: ListTransactionsResponse) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if call.may(ResourceType.TRANSACTIONAL_ID, state.transactional_id, is_denial=False)
        ]

    return changed(call.handle(), keep)


def handle(node: object, request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    return list_transactions(request)


API = Api(
    key=ApiKey.LIST_TRANSACTIONS,
    broker=Served((0, 2), handle, needs=(Need(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),), guard=guard),
    remarks="always empty: no transaction can begin",
)
