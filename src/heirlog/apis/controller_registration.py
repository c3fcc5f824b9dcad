"""ControllerRegistration (key 70): a controller process names its listeners and its features (KIP-919).

v0 only. Every controller sends it to the active one, which may be itself. The rules are in
`controller.controller_registration`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.controller_registration import register_controller
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import ControllerRegistrationRequest, ControllerRegistrationResponse


def handle(
    node: OnController[ChangesMetadata], request: ControllerRegistrationRequest, context: Context
) -> Reply[ControllerRegistrationResponse]:
    controller = node.controller
    return controller.submit(lambda: register_controller(controller.image, request), partial(API.refusal, request))


API = Api(
    key=ApiKey.CONTROLLER_REGISTRATION,
    controller=Served((0, 0), handle, needs=NODES_ONLY),
)
