"""DeleteShareGroupState (key 86): a share group forgets partitions (KIP-932).

v0 is the only version. Brokers send it to the share coordinator. Group coordinators send it when a share group, or its
state of a topic, is deleted. The rules are in `broker.share_coordinator`.
"""

from __future__ import annotations

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import CoordinatesShares, OnBroker
from heirlog.broker.share_coordinator.coordinator import refused_states
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


def refused(request: DeleteShareGroupStateRequest, code: ErrorCode) -> DeleteShareGroupStateResponse:
    """The error of every partition."""
    R = DeleteShareGroupStateResponse
    answer: DeleteShareGroupStateResponse = refused_states(R, R.DeleteStateResult, request.topics, code)
    return answer


def handle(
    node: OnBroker[CoordinatesShares], request: DeleteShareGroupStateRequest, context: Context
) -> Reply[DeleteShareGroupStateResponse]:
    answer: Reply[DeleteShareGroupStateResponse] = node.broker.share_coordinator.delete(request)
    return answer


API = Api(
    key=ApiKey.DELETE_SHARE_GROUP_STATE,
    broker=Served((0, 0), handle, needs=NODES_ONLY),
    refused=refused,
)
