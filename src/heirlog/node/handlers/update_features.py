"""UpdateFeatures (key 57): executed by the active controller, forwarded by brokers (KIP-584, KIP-590).

v0 one flag for downgrades, v1 upgrade types and dry run (KIP-778), v2 one result for all (KIP-1022). The rules are in
`controller.update_features`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.controller.refusals import update_features_refused
from heirlog.protocol.messages import UpdateFeaturesRequest

if TYPE_CHECKING:
    from heirlog.node.node import Node


def handle(node: Node, request: UpdateFeaturesRequest, context: Context) -> Any:
    if node.on_controller_listener(context):
        return node.controller.requests.update_features(request, context)
    return node.forward(request, context, partial(update_features_refused, request))
