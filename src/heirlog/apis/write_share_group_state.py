"""WriteShareGroupState (key 85): what a share group has finished since, from the leader of a partition (KIP-932).

v1 how many records need no delivery any more (KIP-1226). Brokers send it to the share coordinator. Only the newest
leader that has read the newest state may write. The rules are in `broker.share_coordinator`.
"""

from __future__ import annotations

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import CoordinatesShares, OnBroker
from heirlog.broker.share_coordinator.coordinator import refused_states
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import WriteShareGroupStateRequest, WriteShareGroupStateResponse


def refused(request: WriteShareGroupStateRequest, code: ErrorCode) -> WriteShareGroupStateResponse:
    """The error of every partition."""
    R = WriteShareGroupStateResponse
    answer: WriteShareGroupStateResponse = refused_states(R, R.WriteStateResult, request.topics, code)
    return answer


def handle(
    node: OnBroker[CoordinatesShares], request: WriteShareGroupStateRequest, context: Context
) -> Reply[WriteShareGroupStateResponse]:
    answer: Reply[WriteShareGroupStateResponse] = node.broker.share_coordinator.write(request)
    return answer


API = Api(
    key=ApiKey.WRITE_SHARE_GROUP_STATE,
    broker=Served((0, 1), handle, needs=NODES_ONLY),
    refused=refused,
)
