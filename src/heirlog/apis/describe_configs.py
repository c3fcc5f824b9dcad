"""DescribeConfigs (key 32): configurations of topics, groups and of this node, with their sources (KIP-133, KIP-226).

v1 sources and synonyms, v3 types and documentation, v4 flexible. A node's resource is answered by that node only, be it
broker or controller (clients ask the one they mean); the name "" is the cluster-wide default. Its loggers are a
resource of their own (`common.broker_loggers`). Sensitive values are never sent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Protocol

from heirlog.apis.common.api import Api, Served
from heirlog.apis.common.broker_loggers import check_is_me
from heirlog.apis.common.call import Call
from heirlog.apis.common.config_permissions import denial, needs_for, split_by_code
from heirlog.apis.common.ports import Describes, HasLogLevels
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.log_levels import LOGGERS
from heirlog.metadata.acls import AclOperation
from heirlog.metadata.configs import ConfigEntry, ConfigSource, describe
from heirlog.metadata.definition import ConfigType
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE, RESOURCE_TYPES
from heirlog.metadata.topic_name import topic_name_error
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


class Node(Describes, HasLogLevels, Protocol):
    pass


def guard(call: Call[DescribeConfigsRequest, DescribeConfigsResponse]) -> Reply[DescribeConfigsResponse]:
    return split_by_code(call, "results", call.request.resources, partial(denial, call), _refused)


def _refused(
    resource: DescribeConfigsRequest.DescribeConfigsResource, code: ErrorCode
) -> DescribeConfigsResponse.DescribeConfigsResult:
    return Result(
        error_code=code,
        error_message=sentence(code),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def handle(node: Node, request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    resources = _each_once(request.resources)
    unknown = next((kind for kind, _ in resources if kind not in RESOURCE_TYPES), None)
    if unknown is not None:
        # as by Apache Kafka, which then describes nothing
        refused = (
            f"Unexpected resource type {unknown}; topics (2), brokers (4), loggers (8), groups (32) have configurations"
        )
        return DescribeConfigsResponse(
            results=[
                Result(
                    error_code=ErrorCode.INVALID_REQUEST,
                    error_message=refused,
                    resource_type=kind,
                    resource_name=name,
                )
                for kind, name in resources
            ]
        )
    return DescribeConfigsResponse(
        results=[_result(node, kind, name, keys, request) for (kind, name), keys in resources.items()]
    )


def _each_once(resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource]) -> dict[tuple[int, str], set[str]]:
    """By type and name the keys that are asked for, none: all.

    Once, however often a resource is named: a request of a megabyte could ask for gigabytes of the same.
    """
    asked: dict[tuple[int, str], set[str]] = {}
    for one in resources:
        keys = set(one.configuration_keys or ())
        known = asked.get((one.resource_type, one.resource_name))
        asked[one.resource_type, one.resource_name] = (
            keys if known is None else known | keys if known and keys else set()
        )
    return asked


def _result(
    node: Node, kind: int, name: str, keys: Collection[str], request: DescribeConfigsRequest
) -> DescribeConfigsResponse.DescribeConfigsResult:
    result = Result(resource_type=kind, resource_name=name)
    try:
        _check(node, kind, name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
        return result
    result.error_message = ""
    if kind == BROKER_LOGGER_RESOURCE:
        entries = _loggers(node)
    else:
        known = describe(node.image, node.config, kind, name)
        entries = [_entry(entry, request.include_synonyms, request.include_documentation) for entry in known]
    result.configs = [entry for entry in entries if not keys or entry.name in keys]
    return result


def _loggers(node: Node) -> list[DescribeConfigsResponse.DescribeConfigsResourceResult]:
    return [
        Entry(
            name=logger,
            value=node.log_levels.level_of(logger),
            config_source=ConfigSource.DYNAMIC_BROKER_LOGGER,
            config_type=ConfigType.STRING,
        )
        for logger in LOGGERS
    ]


def _check(node: Node, kind: int, name: str) -> None:
    if kind == TOPIC_RESOURCE:
        wrong = topic_name_error(name)
        if wrong is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
        if name not in node.image.topic_ids:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    elif kind == BROKER_RESOURCE:
        if name not in ("", str(node.config.node_id)):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"this is node {node.config.node_id}: ask node {name} for its own configuration",
            )
    elif kind == GROUP_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    elif kind == BROKER_LOGGER_RESOURCE:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        check_is_me(node, name)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {kind} has no configurations here")


def _entry(
    entry: ConfigEntry, with_synonyms: bool, with_documentation: bool
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    return Entry(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        config_type=entry.type,
        documentation=entry.documentation or None if with_documentation else None,
        synonyms=[Synonym(name=synonym.name, value=synonym.value, source=synonym.source) for synonym in entry.synonyms]
        if with_synonyms
        else [],
    )


_SERVED = Served((1, 4), handle, needs=needs_for(AclOperation.DESCRIBE_CONFIGS), guard=guard)
API = Api(
    key=ApiKey.DESCRIBE_CONFIGS,
    broker=_SERVED,
    controller=_SERVED,
    has_large_answer=True,
    remarks="topics, groups, the node itself and its loggers; the documentation texts are heirlog's own",
)
