"""InitializeShareGroupState (key 83): what a share group has finished of a partition begins here (KIP-932).

v0 is the only version. Brokers send it to the share coordinator. Group coordinators send it when a share group
subscribes to a topic, or when an administrator moves its start offset. The rules are in `broker.share_coordinator`.
"""

from __future__ import annotations

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import CoordinatesShares, OnBroker
from heirlog.broker.share_coordinator.coordinator import refused_states
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse


def refused(request: InitializeShareGroupStateRequest, code: ErrorCode) -> InitializeShareGroupStateResponse:
    """The error of every partition."""
    R = InitializeShareGroupStateResponse
    answer: InitializeShareGroupStateResponse = refused_states(R, R.InitializeStateResult, request.topics, code)
    return answer


def handle(
    node: OnBroker[CoordinatesShares], request: InitializeShareGroupStateRequest, context: Context
) -> Reply[InitializeShareGroupStateResponse]:
    answer: Reply[InitializeShareGroupStateResponse] = node.broker.share_coordinator.initialize(request)
    return answer


API = Api(
    key=ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    broker=Served((0, 0), handle, needs=NODES_ONLY),
    refused=refused,
)
