"""AlterConfigs (key 33): the active controller executes it, brokers forward it (KIP-133, KIP-590).

v0-1, v2 flexible. What the request does not name is deleted. The rules are in `controller.alter_configs`. A broker
refuses itself what a running broker cannot follow (`common.config_resources`).
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.config_permissions import alter, denial, denial_on_broker, needs_for
from heirlog.apis.common.config_resources import ForwardsConfigs, answer_with, refusals
from heirlog.apis.common.ports import ChangesMetadata, OnController
from heirlog.context import Context, Reply
from heirlog.controller.alter_configs import alter_configs, replacement
from heirlog.controller.error_messages import sentence
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterConfigsRequest, AlterConfigsResponse


def refused(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[_not_altered(resource, code) for resource in request.resources])


def _not_altered(
    resource: AlterConfigsRequest.AlterConfigsResource, code: ErrorCode
) -> AlterConfigsResponse.AlterConfigsResourceResponse:
    return AlterConfigsResponse.AlterConfigsResourceResponse(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        error_code=code,
        error_message=sentence(code),
    )


def guard_on_broker(call: Call[AlterConfigsRequest, AlterConfigsResponse]) -> Reply[AlterConfigsResponse]:
    return alter(call, call.request.resources, partial(denial_on_broker, call), _not_altered)


def guard(call: Call[AlterConfigsRequest, AlterConfigsResponse]) -> Reply[AlterConfigsResponse]:
    return alter(call, call.request.resources, partial(denial, call), _not_altered)


def handle_on_broker(
    node: ForwardsConfigs, request: AlterConfigsRequest, context: Context
) -> Reply[AlterConfigsResponse]:
    answer: Reply[AlterConfigsResponse] = answer_with(
        request.resources,
        refusals(node, request.resources, replacement, AlterConfigsResponse),
        lambda others: AlterConfigsRequest(resources=others, validate_only=request.validate_only),
        AlterConfigsResponse,
        lambda others: node.forward(others, context, partial(refused, others)),
    )
    return answer


def handle(
    node: OnController[ChangesMetadata], request: AlterConfigsRequest, context: Context
) -> Reply[AlterConfigsResponse]:
    controller = node.controller
    return controller.submit(
        lambda: alter_configs(controller.image, controller.static, request), partial(refused, request)
    )


API = Api(
    key=ApiKey.ALTER_CONFIGS,
    broker=Forwarded(
        (0, 2),
        handle_on_broker,
        needs=(Need(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER),),
        guard=guard_on_broker,
    ),
    controller=Served((0, 2), handle, needs=needs_for(AclOperation.ALTER_CONFIGS), guard=guard),
    refused=refused,
    is_change=True,
    limits=(Limit(MAX_RECORDS_PER_USER_OP, "metadata records", ErrorCode.POLICY_VIOLATION),),
    remarks="topics, groups, brokers, the cluster-wide default",
)
