"""AlterPartition (key 56): a leader asks for another ISR (KIP-497).

v2 topic ids, v3 a broker epoch per ISR member (KIP-903). The answer carries, in our tagged field 10000, the offset at
which the change was committed. The rules are in `controller.alter_partition`.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from heirlog.apis.common.api import NODES_ONLY, Api, Served
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.alter_partition import after_elections, alter_partition
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.protocol.api import ApiKey
from heirlog.protocol.messages import AlterPartitionRequest, AlterPartitionResponse


class AltersPartitions(ChangesMetadata, Protocol):
    @property
    def recovery(self) -> RecoveryManager: ...

    @property
    def next_offset(self) -> int: ...


def handle(
    node: OnController[AltersPartitions], request: AlterPartitionRequest, context: Context
) -> Reply[AlterPartitionResponse]:
    controller = node.controller
    return after_elections(
        controller.env,
        controller.recovery,
        lambda: controller.submit(
            lambda: alter_partition(
                controller.image, controller.static, request, context.api_version, controller.next_offset
            ),
            partial(API.refusal, request),
        ),
    )


API = Api(key=ApiKey.ALTER_PARTITION, controller=Served((2, 3), handle, needs=NODES_ONLY))
