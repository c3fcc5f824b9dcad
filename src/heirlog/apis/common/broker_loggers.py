"""The resource BROKER_LOGGER: the log levels of one process, read and changed while it runs (KIP-412).

Each node answers for itself, brokers and controllers alike; nothing is stored, and nothing is forwarded. SET and DELETE
only; DELETE makes a logger follow its parent again, which the root has none of.

Source: Kafka's RuntimeLoggerManager.
"""

from __future__ import annotations

from heirlog.apis.common.ports import HasConfig, HasLogLevels
from heirlog.controller.alter_configs import AlterConfigOpType
from heirlog.log_levels import LEVELS, LOGGERS, ROOT
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Change = IncrementalAlterConfigsRequest.AlterableConfig


def check_is_me(node: HasConfig, name: str) -> None:
    """Raises KafkaError unless the resource is this node."""
    if not name.isdecimal():
        raise _invalid(f"Node id must be an integer, but it is: {name}")
    if name != str(node.config.node_id):
        raise _invalid(f"Unexpected broker id, expected {node.config.node_id}, but received {name}")


def alter(
    node: HasLogLevels, resource: IncrementalAlterConfigsRequest.AlterConfigsResource, validate_only: bool
) -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    """All changes of the resource, or none of them."""
    answer = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        check_is_me(node, resource.resource_name)
        for change in resource.configs:
            _check(change)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
        return answer
    if not validate_only:
        for change in resource.configs:
            node.log_levels.set(
                change.name, None if change.config_operation == AlterConfigOpType.DELETE else change.value
            )
    return answer


def _check(change: Change) -> None:
    if change.name not in LOGGERS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist; there are {', '.join(LOGGERS)}"
        )
    if change.config_operation == AlterConfigOpType.SET:
        if (change.value or "").upper() not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}",
            )
    elif change.config_operation == AlterConfigOpType.DELETE:
        if change.name == ROOT:
            raise _invalid(f"Removing the log level of the {ROOT} logger is not allowed")
    elif change.config_operation in (AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT):
        raise _invalid(
            f"{AlterConfigOpType(change.config_operation).name} operation is not allowed for the BROKER_LOGGER resource"
        )
    else:
        raise _invalid(
            f"Unknown operation type {change.config_operation} is not allowed for the BROKER_LOGGER resource"
        )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
