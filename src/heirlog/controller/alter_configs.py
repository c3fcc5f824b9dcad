"""AlterConfigs and IncrementalAlterConfigs: both become changes of single configuration values.

    incremental   SET | DELETE | APPEND, SUBTRACT (lists only; they start from the stored value, else Kafka's default).
                  A value that the request does not name stays
    AlterConfigs  the complete configuration of the resource: a stored value that the request does not name is deleted

Each resource succeeds or fails independently of the others. A resource that is named twice is refused, with one result.
`configs.py` checks values, names and the rules of `min.insync.replicas` for both APIs, implicit deletions included.

A broker refuses more before it forwards the request to the controller (`check_keys`): a duplicate name, and null as a
value. If a client sends the request to the controller itself, the last value of a duplicate name wins, and null
deletes.

A request that repeats the stored values succeeds. For a topic it writes nothing; for one broker or for all brokers it
writes the same values again. So it does no harm if the forwarding broker sends a request twice.

Source: KIP-133, KIP-226, KIP-339.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from heirlog.controller.cleared_elr import with_losses
from heirlog.controller.configs import alter_configs as alter_resource
from heirlog.controller.configs import check_resource_type
from heirlog.controller.controller_result import ControllerResult
from heirlog.controller.record_limit import MAX_RECORDS_PER_USER_OP, too_large
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.definition import ConfigError, ConfigKey, ConfigType
from heirlog.metadata.group_configs import GROUP_CONFIGS
from heirlog.metadata.image import GROUP_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.topic_configs import TOPIC_CONFIGS
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from heirlog.raft.values import MAX_RECORDS_PER_BATCH

Changes = Mapping[str, str | None]
Resource = TypeVar(
    "Resource", AlterConfigsRequest.AlterConfigsResource, IncrementalAlterConfigsRequest.AlterConfigsResource
)


class AlterConfigOpType(IntEnum):
    """Numbers on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def alter_configs(
    image: Image, static: StaticConfig, request: AlterConfigsRequest
) -> ControllerResult[AlterConfigsResponse]:
    """Records and results of an AlterConfigs request."""
    verdicts, records = _alter(image, static, request.resources, replacement)
    return _outcome(request, AlterConfigsResponse, verdicts, records)


def incremental_alter_configs(
    image: Image, static: StaticConfig, request: IncrementalAlterConfigsRequest
) -> ControllerResult[IncrementalAlterConfigsResponse]:
    """Records and results of an IncrementalAlterConfigs request."""
    verdicts, records = _alter(image, static, request.resources, increments)
    return _outcome(request, IncrementalAlterConfigsResponse, verdicts, records)


def _outcome(
    request: Any,
    response_class: Any,
    verdicts: Mapping[tuple[int, str], KafkaError | None],
    records: list[Any],
) -> ControllerResult[Any]:
    response = response_class(
        responses=[
            response_class.AlterConfigsResourceResponse(
                resource_type=kind,
                resource_name=name,
                error_code=ErrorCode.NONE if refusal is None else refusal.code,
                error_message=None if refusal is None else refusal.message,
            )
            for (kind, name), refusal in verdicts.items()
        ]
    )
    return ControllerResult(lambda base_offset: response, [] if request.validate_only else records)


def _alter(
    image: Image, static: StaticConfig, resources: Sequence[Resource], changes_of: Callable[[Image, Resource], Changes]
) -> tuple[dict[tuple[int, str], KafkaError | None], list[Any]]:
    """The error of each resource (None: accepted) by its type and name, and the records of all accepted resources."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    verdicts: dict[tuple[int, str], KafkaError | None] = {}
    records: list[Any] = []
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        try:
            check_resource_type(kind)
            if times[kind, name] > 1:
                raise _invalid("Each resource must appear at most once.")
            made = alter_resource(image, static, kind, name, changes_of(image, resource))
            if len(records) + len(made) > MAX_RECORDS_PER_USER_OP:
                raise too_large("Too many configurations in one request", "change them in several requests")
        except KafkaError as error:
            verdicts[kind, name] = error
        else:
            verdicts[kind, name] = None
            records += made
    return verdicts, with_losses(image, static, records, MAX_RECORDS_PER_BATCH)


def replacement(image: Image, resource: AlterConfigsRequest.AlterConfigsResource) -> Changes:
    """The new value by name; None deletes it. Raises KafkaError."""
    stored = image.configs.get((resource.resource_type, resource.resource_name), {})
    changes = {config.name: config.value for config in resource.configs}
    # the values that the request names come first, as on Apache Kafka
    return changes | dict.fromkeys(name for name in stored if name not in changes)


def increments(image: Image, resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> Changes:
    """As `replacement`."""
    kind, name = resource.resource_type, resource.resource_name
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        stored = image.config(kind, name, config.name)
        match config.config_operation:
            case AlterConfigOpType.SET:
                changes[config.name] = config.value
            case AlterConfigOpType.DELETE:
                changes[config.name] = None
            case AlterConfigOpType.APPEND | AlterConfigOpType.SUBTRACT as operation:
                if config.value is None:
                    raise _invalid(f"Null value not supported for : {config.name}")
                changes[config.name] = _edited(AlterConfigOpType(operation), kind, config.name, stored, config.value)
            case other:
                raise _invalid(f"Unknown config operation {other} for {config.name}")
    return changes


def _edited(operation: AlterConfigOpType, kind: int, name: str, stored: str | None, value: str) -> str:
    """The list `stored` with the members of `value` added or removed."""
    definition = _definition(kind, name)
    if definition is None or definition.type is not ConfigType.LIST:
        raise ConfigError(name, f"Can't {operation.name} to key {name} because its type is not LIST.")
    present = [part for part in ((definition.default or "") if stored is None else stored).split(",") if part]
    for part in value.split(","):
        if operation is AlterConfigOpType.APPEND and part not in present:
            present.append(part)
        elif operation is AlterConfigOpType.SUBTRACT and part in present:
            present.remove(part)
    return ",".join(present)


def _definition(kind: int, name: str) -> ConfigKey | None:
    known = {TOPIC_RESOURCE: TOPIC_CONFIGS, GROUP_RESOURCE: GROUP_CONFIGS}.get(kind, SERVER_CONFIGS)
    return known.get(name)


def check_keys(
    resource: AlterConfigsRequest.AlterConfigsResource | IncrementalAlterConfigsRequest.AlterConfigsResource,
) -> None:
    """The checks that a broker makes before it forwards the request to the controller. Raises KafkaError."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    without = [config.name for config in resource.configs if config.value is None and not _deletes(config)]
    if without:
        raise _invalid(f"Null value not supported for : {', '.join(without)}")


def _deletes(config: AlterConfigsRequest.AlterableConfig | IncrementalAlterConfigsRequest.AlterableConfig) -> bool:
    return (
        isinstance(config, IncrementalAlterConfigsRequest.AlterableConfig)
        and config.config_operation == AlterConfigOpType.DELETE
    )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
