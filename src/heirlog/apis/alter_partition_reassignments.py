"""AlterPartitionReassignments (key 45): the active controller executes it, brokers forward it (KIP-455, KIP-590).

v1 may forbid that the replication factor changes (KIP-860). The rules are in `controller.reassignments`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.reassignments import alter_reassignments
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse


def handle(
    node: OnController[ChangesMetadata], request: AlterPartitionReassignmentsRequest, context: Context
) -> Reply[AlterPartitionReassignmentsResponse]:
    controller = node.controller
    return controller.submit(
        lambda: alter_reassignments(controller.image, controller.static, request), partial(API.refusal, request)
    )


API = Api(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    broker=Forwarded((0, 1)),
    controller=Served((0, 1), handle, needs=ALTER_CLUSTER),
    is_change=True,
)
