"""ReadShareGroupStateSummary (key 87): start offsets of a share group (KIP-932).

v1 how many records need no delivery any more (KIP-1226). Brokers send it to the share coordinator. Group coordinators
send it to describe a group; no leader is fenced by it. The rules are in `broker.share_coordinator`.
"""

from __future__ import annotations

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import CoordinatesShares, OnBroker
from heirlog.broker.share_coordinator.coordinator import refused_states
from heirlog.context import Context, Reply
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse


def refused(request: ReadShareGroupStateSummaryRequest, code: ErrorCode) -> ReadShareGroupStateSummaryResponse:
    """The error of every partition."""
    answer: ReadShareGroupStateSummaryResponse = refused_states(
        ReadShareGroupStateSummaryResponse,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
        request.topics,
        code,
    )
    return answer


def handle(
    node: OnBroker[CoordinatesShares], request: ReadShareGroupStateSummaryRequest, context: Context
) -> Reply[ReadShareGroupStateSummaryResponse]:
    answer: Reply[ReadShareGroupStateSummaryResponse] = node.broker.share_coordinator.read_summary(request)
    return answer


API = Api(
    key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    broker=Served((0, 1), handle, needs=NODES_ONLY),
    refused=refused,
)
