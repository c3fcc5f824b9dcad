"""UnregisterBroker (key 64): the active controller executes it, brokers forward it (KIP-631, KIP-590).

v0 only. The rules are in `controller.unregister`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import ALTER_CLUSTER, Api, Forwarded, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.sessions import Sessions
from heirlog.controller.unregister import unregister_broker
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


class Unregisters(ChangesMetadata, Protocol):
    @property
    def sessions(self) -> Sessions: ...


def handle(
    node: OnController[Unregisters], request: UnregisterBrokerRequest, context: Context
) -> Reply[UnregisterBrokerResponse]:
    controller = node.controller
    return controller.submit(
        lambda: unregister_broker(controller.image, controller.static, controller.sessions, request),
        partial(API.refusal, request),
    )


API = Api(
    key=ApiKey.UNREGISTER_BROKER,
    broker=Forwarded((0, 0)),
    controller=Served((0, 0), handle, needs=ALTER_CLUSTER),
    is_change=True,
)
