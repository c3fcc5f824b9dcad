"""AllocateProducerIds (key 67): a block of producer ids for a broker (KIP-730).

v0 only. The rules are in `controller.producer_ids`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.producer_ids import allocate_producer_ids
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(
    node: OnController[ChangesMetadata], request: AllocateProducerIdsRequest, context: Context
) -> Reply[AllocateProducerIdsResponse]:
    controller = node.controller
    return controller.submit(lambda: allocate_producer_ids(controller.image, request), partial(API.refusal, request))


API = Api(key=ApiKey.ALLOCATE_PRODUCER_IDS, controller=Served((0, 0), handle, needs=NODES_ONLY))
