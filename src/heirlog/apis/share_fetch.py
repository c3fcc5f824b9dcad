"""ShareFetch (key 78): records for a member of a share group, and what became of earlier ones (KIP-932).

v1 the first version that is no early access, v2 the acquire mode (KIP-1206) and renewed locks (KIP-1222). The rules are
in `broker.share_partitions`.

A share session remembers topics, so the handler itself asks about each topic (`Context.refuses`).
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import Api, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ShareFetchRequest, ShareFetchResponse


class ShareFetches(Protocol):
    def share_fetch(self, request: ShareFetchRequest, context: Context) -> Reply[ShareFetchResponse]: ...


def guard(call: Call[ShareFetchRequest, ShareFetchResponse]) -> Reply[ShareFetchResponse]:
    group = call.request.group_id or ""
    if not call.may(ResourceType.GROUP, group):
        return call.refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    # the group again: the permission may be removed while the request waits
    return call.handle_refusing(
        lambda topic: not (call.may(ResourceType.GROUP, group) and call.may(ResourceType.TOPIC, topic))
    )


def handle(node: OnBroker[ShareFetches], request: ShareFetchRequest, context: Context) -> Reply[ShareFetchResponse]:
    return node.broker.share_fetch(request, context)


API = Api(
    key=ApiKey.SHARE_FETCH,
    broker=Served(
        (1, 2),
        handle,
        needs=(Need(AclOperation.READ, ResourceType.GROUP), Need(AclOperation.READ, ResourceType.TOPIC)),
        guard=guard,
    ),
    has_large_answer=True,
    limits=(
        Limit("fetch.max.bytes", "bytes of records"),
        Limit("group.share.max.share.sessions", "share sessions", ErrorCode.SHARE_SESSION_LIMIT_REACHED),
        Limit("group.share.partition.max.record.locks", "unfinished offsets of a partition"),
    ),
    remarks="`UNSUPPORTED_VERSION` while `share.version` is 0",
)
