"""DescribeLogDirs (key 35): what is in this broker's log directories (KIP-113).

v1, v2 flexible, v3 an error for the whole request (ACLs), v4 total and usable bytes. The rules are in
`broker.describe_log_dirs`.
"""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Served
from heirlog.apis.common.ports import OnBroker
from heirlog.context import Context
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse


class HasLogDirs(Protocol):
    def describe_log_dirs(self, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse: ...


def handle(node: OnBroker[HasLogDirs], request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    return node.broker.describe_log_dirs(request)


API = Api(
    key=ApiKey.DESCRIBE_LOG_DIRS,
    broker=Served((1, 4), handle, needs=DESCRIBE_CLUSTER),
    has_large_answer=True,
    remarks="replicas do not move between directories, so no replica is a future replica",
)
