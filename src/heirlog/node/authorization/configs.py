"""Guards of configurations: a topic's and a group's are the resource's own, everything else is the cluster's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from heirlog.controller.refusals import sentence
from heirlog.metadata.acls import Operation, ResourceType
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.node.authorization.call import Call, parted
from heirlog.node.authorization.topics import split
from heirlog.node.broker_loggers import BROKER_LOGGER
from heirlog.node.handlers.list_config_resources import CLIENT_METRICS
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterConfigsResponse, DescribeConfigsResponse, IncrementalAlterConfigsResponse

OF_THE_CLUSTER = (BROKER_RESOURCE, BROKER_LOGGER, CLIENT_METRICS)


def _denial(call: Call, resource: Any) -> ErrorCode:
    """NONE also for a kind of resource that the handler refuses, whoever asks."""
    kind, name = resource.resource_type, resource.resource_name
    if kind in OF_THE_CLUSTER and not call.may(ResourceType.CLUSTER):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if kind == TOPIC_RESOURCE and not call.may(ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if kind == GROUP_RESOURCE and not call.may(ResourceType.GROUP, name):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def describe_configs(call: Call) -> Any:
    def refused(resource: Any) -> DescribeConfigsResponse.DescribeConfigsResult:
        code = _denial(call, resource)
        return DescribeConfigsResponse.DescribeConfigsResult(
            error_code=code,
            error_message=sentence(code),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    left, denied = parted(call.request.resources, lambda resource: _denial(call, resource) is ErrorCode.NONE)
    return split(call, "resources", "results", left, denied, refused)


def alter_configs(call: Call) -> Any:
    return _alter(call, AlterConfigsResponse.AlterConfigsResourceResponse, lambda resource: _denial(call, resource))


def incremental_alter_configs(call: Call) -> Any:
    """On a controller, whose loggers are changed as its peers may: CLUSTER_ACTION."""

    def denial(resource: Any) -> ErrorCode:
        if resource.resource_type != BROKER_LOGGER:
            return _denial(call, resource)
        is_peer = call.may_also(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        return ErrorCode.NONE if is_peer else ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    return _alter(call, IncrementalAlterConfigsResponse.AlterConfigsResourceResponse, denial)


def alter_loggers(call: Call) -> Any:
    """On a broker: its loggers are its own to change, the rest goes to the active controller, which asks."""

    def denial(resource: Any) -> ErrorCode:
        return _denial(call, resource) if resource.resource_type == BROKER_LOGGER else ErrorCode.NONE

    return _alter(call, IncrementalAlterConfigsResponse.AlterConfigsResourceResponse, denial)


def _alter(call: Call, result: Callable[..., Any], denial: Callable[[Any], ErrorCode]) -> Any:
    """A resource that is named twice is invalid, whoever asks."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in call.request.resources)

    def is_left(resource: Any) -> bool:
        return times[resource.resource_type, resource.resource_name] > 1 or denial(resource) is ErrorCode.NONE

    def refused(resource: Any) -> Any:
        code = denial(resource)
        return result(
            error_code=code,
            error_message=sentence(code),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    left, denied = parted(call.request.resources, is_left)
    return split(call, "resources", "responses", left, denied, refused)
