"""AssignReplicasToDirs (key 73): a broker reports in which log directories its replicas are (KIP-858).

v0 only. The rules are in `controller.assign_directories`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.assign_directories import assign_directories
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def handle(
    node: OnController[ChangesMetadata], request: AssignReplicasToDirsRequest, context: Context
) -> Reply[AssignReplicasToDirsResponse]:
    controller = node.controller
    return controller.submit(
        lambda: assign_directories(controller.image, controller.static, request), partial(API.refusal, request)
    )


API = Api(
    key=ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    controller=Served((0, 0), handle, needs=NODES_ONLY),
    remarks="sent by brokers with several log directories",
)
