"""AlterClientQuotas (key 49): sets and removes the quotas of users, client ids and addresses (KIP-546, KIP-612).

v0, v1 flexible. The active controller executes it, brokers forward it. The rules are in `controller.client_quotas`,
and which quota counts for a client in `metadata.client_quotas`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.client_quotas import alter_client_quotas, result_of
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse


def refused(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[result_of(asked, code, sentence(code)) for asked in request.entries])


def handle(
    node: OnController[ChangesMetadata], request: AlterClientQuotasRequest, context: Context
) -> Reply[AlterClientQuotasResponse]:
    controller = node.controller
    return controller.submit(lambda: alter_client_quotas(controller.image, request), partial(refused, request))


API = Api(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    broker=Forwarded((0, 1)),
    controller=Served((0, 1), handle, needs=(Need(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER),)),
    refused=refused,
    is_change=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
    remarks=(
        "an entity that comes twice is refused twice and not written at all; an address must be an address, not a "
        "host name; values must be finite numbers"
    ),
)
