"""ListConfigResources (key 74): the names of what can have configurations (KIP-1142).

v0 asks for client metrics only, v1 for any of topics, brokers, broker loggers, client metrics and groups; no type named
is all of them. Client metrics have no configurations here, and of groups those are named that have some of their own.
Brokers that are fenced, or have no address on the listener of the request, are left out, as on Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.ports import HasImage, NamesBrokers
from heirlog.context import Context
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, RESOURCE_TYPES
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListConfigResourcesRequest, ListConfigResourcesResponse


class Node(HasImage, NamesBrokers, Protocol):
    pass


def handle(node: Node, request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    asked = [CLIENT_METRICS_RESOURCE] if context.api_version == 0 else request.resource_types or RESOURCE_TYPES
    if not set(asked) <= set(RESOURCE_TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(asked)
            for name in _names(node, kind, context.listener)
        ]
    )


def _names(node: Node, kind: int, listener: str) -> Iterator[str]:
    if kind == TOPIC_RESOURCE:
        yield from sorted(node.image.topic_ids)
    elif kind == GROUP_RESOURCE:
        yield from sorted(name for resource, name in node.image.configs if resource == GROUP_RESOURCE)
    elif kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        for broker in node.sorted_brokers():
            if not broker.fenced and broker.endpoint(listener) is not None:
                yield str(broker.id)


API = Api(
    key=ApiKey.LIST_CONFIG_RESOURCES,
    broker=Served((0, 1), handle, needs=(Need(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)),
    has_large_answer=True,
    remarks="topics, brokers, their loggers, and groups that have configurations",
)
