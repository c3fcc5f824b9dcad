"""Permissions of configurations: a topic's and a group's are the resource's own, all others are the cluster's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from heirlog.apis.common.api import Need
from heirlog.apis.common.broker_loggers import BROKER_LOGGER
from heirlog.apis.common.call import Call, Q, R, parted, split
from heirlog.apis.common.config_resources import CLIENT_METRICS
from heirlog.context import Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.protocol.errors import ErrorCode

OF_THE_CLUSTER: Final = (BROKER_RESOURCE, BROKER_LOGGER, CLIENT_METRICS)


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


def alter(
    call: Call[Q, R],
    resources: list[Any],
    denial_of: Callable[[Any], ErrorCode],
    refused: Callable[[Any, ErrorCode], Any],
) -> Reply[R]:
    """The answer of AlterConfigs and IncrementalAlterConfigs. A resource named twice is invalid for every client."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)

    def is_allowed(resource: Any) -> bool:
        is_repeated = times[resource.resource_type, resource.resource_name] > 1
        return is_repeated or denial_of(resource) is ErrorCode.NONE

    allowed, denied = parted(resources, is_allowed)
    return split(call, "resources", "responses", allowed, denied, lambda each: refused(each, denial_of(each)))
