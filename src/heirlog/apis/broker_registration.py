"""BrokerRegistration (key 62): an incarnation of a broker enters the cluster, fenced (KIP-631).

v1 migration from ZooKeeper, which is refused, v2 log directories, v3 the previous broker epoch that proves a clean stop
(KIP-966), v4 feature minimum 0. The rules are in `controller.registration`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.registration import register_broker
from heirlog.controller.sessions import Sessions
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import BrokerRegistrationRequest, BrokerRegistrationResponse


class Registers(ChangesMetadata, Protocol):
    @property
    def sessions(self) -> Sessions: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def next_offset(self) -> int: ...


def handle(
    node: OnController[Registers], request: BrokerRegistrationRequest, context: Context
) -> Reply[BrokerRegistrationResponse]:
    controller = node.controller
    return controller.submit(
        lambda: register_broker(
            controller.image,
            controller.static,
            controller.sessions,
            request,
            context.api_version,
            controller.cluster_id,
            lambda: controller.next_offset,
        ),
        partial(API.refusal, request),
    )


API = Api(
    key=ApiKey.BROKER_REGISTRATION,
    controller=Served((0, 4), handle, needs=NODES_ONLY),
    remarks="0 and 1 are answered, but a registration needs the log directories, which only version 2 and later have",
)
