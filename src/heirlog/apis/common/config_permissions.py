"""Permissions of configurations: a topic's and a group's are the resource's own, all others are the cluster's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from heirlog.apis.common.api import Need
from heirlog.apis.common.call import Call, Q, R, split
from heirlog.context import Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE
from heirlog.protocol.errors import ErrorCode

OF_THE_CLUSTER: Final = (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE)


def needs_for(operation: AclOperation) -> tuple[Need, ...]:
    return (
        Need(operation, ResourceType.TOPIC),
        Need(operation, ResourceType.GROUP),
        Need(operation, ResourceType.CLUSTER),
    )


def denial(call: Call[Q, R], resource: Any) -> ErrorCode:
    """NONE also for a kind of resource that the handler refuses for every client."""
    kind, name = resource.resource_type, resource.resource_name
    if kind in OF_THE_CLUSTER and not call.may(ResourceType.CLUSTER):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if kind == TOPIC_RESOURCE and not call.may(ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if kind == GROUP_RESOURCE and not call.may(ResourceType.GROUP, name):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def denial_on_broker(call: Call[Q, R], resource: Any) -> ErrorCode:
    """Of what the broker itself looks into; about everything else the active controller is asked."""
    is_mine = resource.resource_type in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE)
    return denial(call, resource) if is_mine else ErrorCode.NONE


def alter(
    call: Call[Q, R],
    resources: list[Any],
    denial_of: Callable[[Any], ErrorCode],
    refused: Callable[[Any, ErrorCode], Any],
) -> Reply[R]:
    """The answer of AlterConfigs and IncrementalAlterConfigs. A resource named twice is invalid for every client."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def code_of(resource: Any) -> ErrorCode:
        is_repeated = times[resource.resource_type, resource.resource_name] > 1
        return ErrorCode.NONE if is_repeated else denial_of(resource)

    return split_by_code(call, "responses", resources, code_of, refused)


def split_by_code(
    call: Call[Q, R],
    answered_in: str,
    resources: list[Any],
    code_of: Callable[[Any], ErrorCode],
    refused: Callable[[Any, ErrorCode], Any],
) -> Reply[R]:
    """The handler's answer to the resources whose code is NONE, followed by the refusals of the others.

    Each resource is judged once: a denial is logged.
    """
    judged = [(resource, code_of(resource)) for resource in resources]
    allowed = [resource for resource, code in judged if code is ErrorCode.NONE]
    denied = [each for each in judged if each[1] is not ErrorCode.NONE]
    return split(call, "resources", answered_in, allowed, denied, lambda each: refused(*each))
