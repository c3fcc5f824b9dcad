"""DescribeRecovery (key 10094): what happens to partitions without a leader; brokers forward it.

v0 only. The key is ours, so ApiVersions does not show it: a node that serves it shows the feature
heirlog.recovery.version. The rules are in `controller.recovery.status`.

An operator sends this during an outage. Where no controller is active the broker says so, and which addresses it has
tried, before the client gives up (after 30 s by default); a bare timeout would leave the operator to guess.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from heirlog.apis.common.api import DESCRIBE_CLUSTER, Api, Forwarded, Limit, Served
from heirlog.apis.common.ports import ChangesMetadata, Forwards, HasConfig, NamesControllers, OnController
from heirlog.context import Context, Reply
from heirlog.controller.controller_result import answer
from heirlog.controller.recovery.manager import RecoveryManager
from heirlog.controller.recovery.status import ask_replicas, describe_recovery
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeRecoveryRequest, DescribeRecoveryResponse

WAIT_MS: Final = 10_000
"""Longer than another controller takes to become active."""


class Broker(Forwards, NamesControllers, HasConfig, Protocol):
    pass


class Recovers(ChangesMetadata, Protocol):
    @property
    def recovery(self) -> RecoveryManager: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def epoch(self) -> int: ...


def handle_on_broker(
    node: Broker, request: DescribeRecoveryRequest, context: Context
) -> Reply[DescribeRecoveryResponse]:
    def refused(code: ErrorCode) -> DescribeRecoveryResponse:
        response = API.refusal(request, code)
        if code is ErrorCode.REQUEST_TIMED_OUT:
            asked = ", ".join(map(str, node.controllers()))
            response.error_message = (
                f"no controller is active: broker {node.config.node_id} had no answer from {asked} within "
                f"{WAIT_MS // 1000} s; start the controllers at these addresses; if they run, read their logs; then "
                "try again"
            )
        return response

    return node.forward(request, context, refused, WAIT_MS)


def handle(
    node: OnController[Recovers], request: DescribeRecoveryRequest, context: Context
) -> Reply[DescribeRecoveryResponse]:
    controller = node.controller
    if controller.is_active and request.ask_replicas:
        ask_replicas(controller.image, controller.static, controller.recovery, request)
    return controller.submit(
        lambda: answer(
            describe_recovery(
                controller.image,
                controller.static,
                controller.recovery,
                request,
                controller.env.now_ms(),
                controller.epoch,
            )
        ),
        partial(API.refusal, request),
    )


API = Api(
    key=ApiKey.DESCRIBE_RECOVERY,
    broker=Forwarded((0, 0), handle_on_broker),
    controller=Served((0, 0), handle, needs=DESCRIBE_CLUSTER),
    has_large_answer=True,
    limits=(Limit("max.request.partition.size.limit", "partitions in an answer"),),
    remarks=(
        "heirlog's own, never advertised: the state of partitions without a leader, and what each choice would lose"
    ),
)
