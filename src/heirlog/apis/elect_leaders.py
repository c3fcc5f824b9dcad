"""ElectLeaders (key 43): the active controller executes it, brokers forward it (KIP-460, KIP-590).

v0 preferred only, v1 election type, v2 flexible; v3 is ours: longest log, designation, DesiredLeaders, SkipWait, and at
most 1000 partitions in one request. ApiVersions does not show v3: a node that serves it shows the feature
heirlog.recovery.version. The rules are in `controller.elect_leaders`.

ALTER on the cluster is the permission that Kafka shipped, CLUSTER_ACTION the one of KIP-966; one of them is enough.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, NODES_ONLY, Api, Forwarded, Limit, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.elect_leaders import MAX_PARTITIONS, elect_leaders, refused
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ElectLeadersRequest, ElectLeadersResponse


class Elects(ChangesMetadata, Protocol):
    @property
    def recovery(self) -> RecoveryManager: ...


def handle(node: OnController[Elects], request: ElectLeadersRequest, context: Context) -> Reply[ElectLeadersResponse]:
    controller = node.controller
    return controller.submit(
        lambda: elect_leaders(controller.image, controller.static, request, context.api_version, controller.recovery),
        partial(refused, request),
    )


API = Api(
    key=ApiKey.ELECT_LEADERS,
    broker=Forwarded((0, 3)),
    controller=Served((0, 3), handle, needs=(*ALTER_CLUSTER, *NODES_ONLY)),
    refused=refused,
    is_change=True,
    has_large_answer=True,
    limits=(Limit(MAX_PARTITIONS, "partitions in version 3", ErrorCode.REQUEST_LIMIT_REACHED),),
    remarks=(
        "0-2 as in Kafka. 3 is the version of KIP-966 (longest log, designation). It is never advertised; servers "
        "with the feature `heirlog.recovery.version` support it"
    ),
)
