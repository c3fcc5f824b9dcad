"""TxnOffsetCommit (key 28): offsets of a group, committed with a transaction (KIP-98).

v2 leader epochs, v3 flexible, member, generation and instance (KIP-447), v4 TRANSACTION_ABORTABLE, v5 adds the group's
partition to the transaction (KIP-890). The rules are in `broker.groups.txn_offset_requests`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call, parted, split
from heirlog.apis.common.ports import OnBroker
from heirlog.broker.groups.txn_offset_requests import refusal
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse


class CommitsInTransactions(Protocol):
    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, context: Context
    ) -> Reply[TxnOffsetCommitResponse]: ...


def guard(call: Call[TxnOffsetCommitRequest, TxnOffsetCommitResponse]) -> Reply[TxnOffsetCommitResponse]:
    """The transactional id first, then the group, then each topic."""
    request = call.request
    if not call.may(ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not call.may(ResourceType.GROUP, request.group_id):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    allowed, denied = parted(request.topics, lambda topic: call.may(ResourceType.TOPIC, topic.name))
    return split(call, "topics", "topics", allowed, denied, _denied)


def _denied(
    topic: TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic,
) -> TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    (answer,) = refusal([topic], code, {}).topics
    return answer


def handle(
    node: OnBroker[CommitsInTransactions], request: TxnOffsetCommitRequest, context: Context
) -> Reply[TxnOffsetCommitResponse]:
    return node.broker.txn_offset_commit(request, context)


API = Api(
    key=ApiKey.TXN_OFFSET_COMMIT,
    broker=Served(
        (0, 5),
        handle,
        needs=(
            Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
            Need(AclOperation.READ, ResourceType.GROUP),
            Need(AclOperation.READ, ResourceType.TOPIC),
        ),
        guard=guard,
    ),
    refused=lambda request, code: refusal(request.topics, code, {}),
    limits=(Limit("offset.metadata.max.bytes", "bytes of metadata", ErrorCode.OFFSET_METADATA_TOO_LARGE),),
)
