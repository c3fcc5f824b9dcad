"""DescribeProducers (key 61): the producers that a partition remembers (KIP-664).

v0 only. The rules are in `broker.describe_producers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heirlog.context import Context
from heirlog.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    return node.broker.describe_producers(request)
