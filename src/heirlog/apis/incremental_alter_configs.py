"""IncrementalAlterConfigs (key 44): the active controller executes it, brokers forward it (KIP-339, KIP-590).

v0, v1 flexible. What the request does not name stays. The rules are in `controller.alter_configs`. Each node changes
its own loggers (`common.broker_loggers`), and a broker refuses itself what a running broker cannot follow
(`common.config_resources`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from heirlog.apis.common import broker_loggers
from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.config_permissions import alter, denial, denial_on_broker, needs_for
from heirlog.apis.common.config_resources import ForwardsConfigs, answer_with, refusals
from heirlog.apis.common.ports import ChangesMetadata, HasLogLevels, OnController
from heirlog.context import Context, Reply
from heirlog.controller.alter_configs import incremental_alter_configs, increments
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


class Broker(ForwardsConfigs, HasLogLevels, Protocol):
    pass


class Controller(OnController[ChangesMetadata], HasLogLevels, Protocol):
    pass


def not_altered(request: IncrementalAlterConfigsRequest, code: ErrorCode) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=[_not_altered(resource, code) for resource in request.resources])


def _not_altered(
    resource: IncrementalAlterConfigsRequest.AlterConfigsResource, code: ErrorCode
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    return Result(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=code,
        error_message=sentence(code),
    )


def guard_on_broker(
    call: Call[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse],
) -> Reply[IncrementalAlterConfigsResponse]:
    return alter(call, call.request.resources, partial(denial_on_broker, call), _not_altered)


def guard(
    call: Call[IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse],
) -> Reply[IncrementalAlterConfigsResponse]:
    """The loggers of a controller need CLUSTER_ACTION, the permission of its peers."""

    def denial_of(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> ErrorCode:
        if resource.resource_type != BROKER_LOGGER_RESOURCE:
            return denial(call, resource)
        is_peer = call.may_also(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER)
        return ErrorCode.NONE if is_peer else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    return alter(call, call.request.resources, denial_of, _not_altered)


def handle_on_broker(
    node: Broker, request: IncrementalAlterConfigsRequest, context: Context
) -> Reply[IncrementalAlterConfigsResponse]:
    def forward(others: IncrementalAlterConfigsRequest) -> Reply[IncrementalAlterConfigsResponse]:
        return node.forward(others, context, partial(not_altered, others))

    refused = refusals(node, request.resources, increments, IncrementalAlterConfigsResponse)
    return _altered(node, request, refused, forward)


def handle(
    node: Controller, request: IncrementalAlterConfigsRequest, context: Context
) -> Reply[IncrementalAlterConfigsResponse]:
    controller = node.controller

    def submit(others: IncrementalAlterConfigsRequest) -> Reply[IncrementalAlterConfigsResponse]:
        return controller.submit(
            lambda: incremental_alter_configs(controller.image, controller.static, others), partial(not_altered, others)
        )

    return _altered(node, request, [None] * len(request.resources), submit)


def _altered(
    node: HasLogLevels,
    request: IncrementalAlterConfigsRequest,
    refused: Sequence[Result | None],
    ask: Callable[[IncrementalAlterConfigsRequest], Reply[IncrementalAlterConfigsResponse]],
) -> Reply[IncrementalAlterConfigsResponse]:
    """refused: what this node refuses itself, by resource. ask: the controller."""

    def local(resource: Resource, mine: Result | None) -> Result | None:
        if resource.resource_type == BROKER_LOGGER_RESOURCE and mine is None:
            return broker_loggers.alter(node, resource, request.validate_only)
        return mine

    answer: Reply[IncrementalAlterConfigsResponse] = answer_with(
        request.resources,
        [local(resource, mine) for resource, mine in zip(request.resources, refused, strict=True)],
        lambda others: IncrementalAlterConfigsRequest(resources=others, validate_only=request.validate_only),
        IncrementalAlterConfigsResponse,
        ask,
    )
    return answer


API = Api(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    broker=Forwarded(
        (0, 1),
        handle_on_broker,
        needs=(Need(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER),),
        guard=guard_on_broker,
    ),
    controller=Served(
        (0, 1),
        handle,
        needs=needs_for(AclOperation.ALTER_CONFIGS),
        also=(Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),),
        guard=guard,
    ),
    refused=not_altered,
    is_change=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
    remarks=(
        "as AlterConfigs. The node that receives the request changes its own loggers. A broker refuses a change that "
        "a running broker of Apache Kafka refuses (less than half or more than double the threads of a pool, zero "
        "connections)"
    ),
)
