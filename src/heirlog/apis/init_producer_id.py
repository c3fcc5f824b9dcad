"""InitProducerId (key 22): an id and an epoch for an idempotent or a transactional producer (KIP-98).

v2 flexible, v3 the current id and epoch of a producer that wants a higher epoch, v4 PRODUCER_FENCED, v5
TRANSACTION_ABORTABLE, v6 two-phase commit (KIP-939; a node serves it only with `unstable.api.versions.enable`). The
rules are in `broker.producer_id_manager`, `broker.transactions.coordinator` and `broker.transactions.initialize`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import InitProducerIdRequest, InitProducerIdResponse

TWO_PHASE_COMMIT = Need(AclOperation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID)


class GivesProducerIds(Protocol):
    def init_producer_id(self, request: InitProducerIdRequest, context: Context) -> Reply[InitProducerIdResponse]: ...


def guard(call: Call[InitProducerIdRequest, InitProducerIdResponse]) -> Reply[InitProducerIdResponse]:
    """An idempotent producer needs no permission of its own where it may write to some topic (KIP-679)."""
    transactional_id = call.request.transactional_id
    if transactional_id is not None:
        if not call.may(ResourceType.TRANSACTIONAL_ID, transactional_id):
            return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if call.request.enable2_pc and not call.may_also(*TWO_PHASE_COMMIT, transactional_id):
            return call.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not call.may_any(ResourceType.TOPIC) and not call.may(ResourceType.CLUSTER):
        return call.refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return call.handle()


def handle(
    node: OnBroker[GivesProducerIds], request: InitProducerIdRequest, context: Context
) -> Reply[InitProducerIdResponse]:
    return node.broker.init_producer_id(request, context)


API = Api(
    key=ApiKey.INIT_PRODUCER_ID,
    broker=Served(
        (0, 6),
        handle,
        needs=(
            Need(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
            Need(AclOperation.WRITE, ResourceType.TOPIC),
            Need(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        ),
        also=(TWO_PHASE_COMMIT,),
        guard=guard,
        last_is_unstable=True,
    ),
    remarks=(
        "version 6 only with `unstable.api.versions.enable`, as on Apache Kafka 4.2: "
        "[two-phase commit](internals/transactions.md#two-phase-commit)"
    ),
)
