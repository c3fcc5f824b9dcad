"""DescribeQuorum (key 55): leader, voters and observers of the metadata quorum (KIP-595); brokers forward it.

v1 fetch and caught-up times, v2 directory ids, voters' listeners and error messages. The rules are in `raft.describe`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import OnQuorum
from heirlog.context import Context
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse


class DescribesQuorum(Protocol):
    def describe_quorum(self, request: DescribeQuorumRequest) -> DescribeQuorumResponse: ...


def handle(node: OnQuorum[DescribesQuorum], request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    return node.quorum.describe_quorum(request)


API = Api(
    key=ApiKey.DESCRIBE_QUORUM,
    broker=Forwarded((0, 2)),
    controller=Served((0, 2), handle, needs=DESCRIBE_CLUSTER),
)
