"""ReadShareGroupState (key 84): what a share group has finished, for the leader of a partition (KIP-932).

v0 is the only version. Brokers send it to the share coordinator. A read by a newer leader fences the older ones. The
rules are in `broker.share_coordinator`.
"""

from __future__ import annotations

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import CoordinatesShares, OnBroker
from heirlog.broker.share_coordinator.coordinator import refused_states
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ReadShareGroupStateRequest, ReadShareGroupStateResponse


def refused(request: ReadShareGroupStateRequest, code: ErrorCode) -> ReadShareGroupStateResponse:
    """The error of every partition."""
    R = ReadShareGroupStateResponse
    answer: ReadShareGroupStateResponse = refused_states(R, R.ReadStateResult, request.topics, code)
    return answer


def handle(
    node: OnBroker[CoordinatesShares], request: ReadShareGroupStateRequest, context: Context
) -> Reply[ReadShareGroupStateResponse]:
    answer: Reply[ReadShareGroupStateResponse] = node.broker.share_coordinator.read(request)
    return answer


API = Api(
    key=ApiKey.READ_SHARE_GROUP_STATE,
    broker=Served((0, 0), handle, needs=NODES_ONLY),
    refused=refused,
)
