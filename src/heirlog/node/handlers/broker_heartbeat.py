"""BrokerHeartbeat (key 63): a broker tells that it lives and what it wants, and is told its state (KIP-631).

v1 offline log directories (KIP-858). The state machine is in `controller.sessions`. The connection of the last
heartbeat stands for the session: when it closes and no heartbeat comes on a new one in time, the broker is fenced
("broker session").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from heirlog.context import Context
from heirlog.node.connection import ClientConnection
from heirlog.protocol.messages import BrokerHeartbeatRequest
from heirlog.protocol.types import BrokerEpoch, BrokerId

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: BrokerHeartbeatRequest, context: Context) -> Any:
    connection = cast(ClientConnection, context.connection)
    broker, epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    connection.on_closed = lambda: node.controller.broker_connection_closed(broker, epoch, connection)
    return node.controller.requests.broker_heartbeat(request, context)
