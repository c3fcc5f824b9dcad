"""EndTxn (key 26): commit or abort the open transaction of a producer (KIP-98).

v2 PRODUCER_FENCED, v3 flexible, v4 TRANSACTION_ABORTABLE, v5 the id and epoch of the producer's next transaction
(KIP-890). The rules are in `broker.transactions.end`.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import CoordinatesTransactions, OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import EndTxnRequest, EndTxnResponse


def guard(call: Call[EndTxnRequest, EndTxnResponse]) -> Reply[EndTxnResponse]:
    if call.may(ResourceType.TRANSACTIONAL_ID, call.request.transactional_id):
        return call.handle()
    return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def handle(node: OnBroker[CoordinatesTransactions], request: EndTxnRequest, context: Context) -> Reply[EndTxnResponse]:
    return node.broker.transactions.end_txn(request, context)


API = Api(
    key=ApiKey.END_TXN,
    broker=Served((0, 5), handle, needs=(Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),), guard=guard),
)
