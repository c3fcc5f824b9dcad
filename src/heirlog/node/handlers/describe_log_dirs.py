"""DescribeLogDirs (key 35): what lies in this broker's log directories (KIP-113).

v1, v2 flexible, v3 an error for the whole request (ACLs), v4 total and usable bytes. The rules are in
`broker.describe_log_dirs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    return node.broker.describe_log_dirs(request)
