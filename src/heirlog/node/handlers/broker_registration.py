"""BrokerRegistration (key 62): a broker's incarnation enters the cluster, fenced (KIP-631).

v2 log directories, v3 the previous broker epoch that tells a clean stop (KIP-966), v4 feature minimum 0. The rules are
in `controller.registration`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.protocol.messages import BrokerRegistrationRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: BrokerRegistrationRequest, context: Context) -> Any:
    return node.controller.requests.broker_registration(request, context)
