"""ShareAcknowledge (key 79): what became of the records that a member of a share group acquired (KIP-932).

v1 the first version that is no early access, v2 renewed locks and the lock's duration in the answer (KIP-1222). The
rules are in `broker.share_partitions`.
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
from heirlog.protocol.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse


class ShareAcknowledges(Protocol):
    def share_acknowledge(
        self, request: ShareAcknowledgeRequest, context: Context
    ) -> Reply[ShareAcknowledgeResponse]: ...


def guard(call: Call[ShareAcknowledgeRequest, ShareAcknowledgeResponse]) -> Reply[ShareAcknowledgeResponse]:
    if not call.may(ResourceType.GROUP, call.request.group_id or ""):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return call.handle_refusing(lambda topic: not call.may(ResourceType.TOPIC, topic))


def handle(
    node: OnBroker[ShareAcknowledges], request: ShareAcknowledgeRequest, context: Context
) -> Reply[ShareAcknowledgeResponse]:
    return node.broker.share_acknowledge(request, context)


API = Api(
    key=ApiKey.SHARE_ACKNOWLEDGE,
    broker=Served(
        (1, 2),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    remarks="`UNSUPPORTED_VERSION` while `share.version` is 0",
)
