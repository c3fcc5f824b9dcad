"""ListTransactions (key 66): the transactions that this broker coordinates (KIP-664).

v1 a filter by duration (KIP-994), v2 a pattern of transactional ids (KIP-1152). The rules are in
`broker.list_transactions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.broker.list_transactions import list_transactions
from heirlog.context import Context
from heirlog.protocol.messages import ListTransactionsRequest, ListTransactionsResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    return list_transactions(request)
