"""BrokerHeartbeat (key 63): a broker is alive and says what it wants; the answer is its state (KIP-631).

v1 offline log directories (KIP-858). The state machine is in `controller.sessions` and `controller.heartbeat`. The
connection of the last heartbeat stands for the session: when it closes and no heartbeat comes on a new one in time, the
broker is fenced (`heirlog.broker.disconnect.grace.ms`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.heartbeat import heartbeat
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.controller.sessions import Sessions
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from heirlog.protocol.types import BrokerEpoch, BrokerId


class Connection(Protocol):
    """What the handler uses of the connection that the heartbeat came on."""

    def when_closed(self, fn: Callable[[], None]) -> None: ...


class TakesHeartbeats(ChangesMetadata, Protocol):
    @property
    def sessions(self) -> Sessions: ...

    @property
    def recovery(self) -> RecoveryManager: ...

    def broker_connection_closed(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, connection: object) -> None: ...

    def heartbeat_came(self, broker_id: BrokerId, broker_epoch: BrokerEpoch, host: str) -> None: ...


def handle(
    node: OnController[TakesHeartbeats], request: BrokerHeartbeatRequest, context: Context
) -> Reply[BrokerHeartbeatResponse]:
    controller, connection = node.controller, cast(Connection, context.connection)
    broker_id, broker_epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    connection.when_closed(partial(controller.broker_connection_closed, broker_id, broker_epoch, connection))
    answer = controller.submit(
        lambda: heartbeat(
            controller.image, controller.static, controller.sessions, request, controller.env.now_ms(), connection
        ),
        partial(API.refusal, request),
    )
    controller.heartbeat_came(broker_id, broker_epoch, context.client_host)
    controller.recovery.heartbeat()
    return answer


API = Api(key=ApiKey.BROKER_HEARTBEAT, controller=Served((0, 1), handle, needs=NODES_ONLY))
