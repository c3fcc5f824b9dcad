"""ListPartitionReassignments (key 46): the active controller answers it, brokers forward it (KIP-455, KIP-590).

v0 only. The rules are in `controller.reassignments`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.controller_result import answer
from heirlog.controller.reassignments import list_reassignments
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse


def handle(
    node: OnController[ChangesMetadata], request: ListPartitionReassignmentsRequest, context: Context
) -> Reply[ListPartitionReassignmentsResponse]:
    controller = node.controller
    return controller.submit(
        lambda: answer(list_reassignments(controller.image, request)), partial(API.refusal, request)
    )


API = Api(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    broker=Forwarded((0, 0)),
    controller=Served((0, 0), handle, needs=DESCRIBE_CLUSTER),
    has_large_answer=True,
)
