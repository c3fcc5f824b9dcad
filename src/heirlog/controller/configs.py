"""Changes of dynamic configurations, and what follows from a change of `min.insync.replicas`.

While ELR is on, a ClearElr follows every ConfigRecord of that name in the same batch. It names the topic, or "" (all
topics) if the value is cluster-wide. Lists that were made under one min ISR prove nothing under another one.

* A request for a topic that repeats the stored value writes nothing. A request for one broker or for all brokers always
  writes, whatever the name; so a cluster-wide min ISR always clears the lists.
* A value of one broker can be neither set nor deleted: brokers and controller must resolve the same min ISR.
* The cluster-wide value cannot be deleted: without it each node would use the value of its own file.

A deletion is accepted for any name. A log that Kafka wrote may hold configurations that heirlog does not know, and an
operator must be able to delete them.

Source: KIP-966, "Other behaviors"; KAFKA-16540.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heirlog.controller.controller_result import check_sizes
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.definition import ConfigError, Update
from heirlog.metadata.group_configs import validate_group_configs
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.listener_security import is_setting_of_listener, limit_of_listener, store_of_listener
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.metadata.security_configs import SECURITY, STORES
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.state import RESOURCE_TYPES
from heirlog.metadata.topic_configs import validate_topic_configs
from heirlog.metadata.topic_name import topic_name_error
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.records import ClearElrRecord, ConfigRecord
from heirlog.protocol.types import BrokerId

OF_SECURITY = frozenset(key.name for key in SECURITY)
CLUSTER_DEFAULT = ""
"""Name of the broker resource that means all brokers."""


def config_records(image: Image, kind: int, name: str, changes: Mapping[str, str | None]) -> list[Any]:
    """The records of `changes` (None deletes), unchecked, followed by a ClearElr if they change the min ISR."""
    records: list[Any] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value) for key, value in changes.items()
    ]
    check_sizes(records)
    if MIN_ISR in changes and image.elr_enabled and kind != GROUP_RESOURCE:
        records.append(ClearElrRecord(topic_name=name if kind == TOPIC_RESOURCE else ""))
    return records


def alter_configs(
    image: Image, static: StaticConfig, kind: int, name: str, changes: Mapping[str, str | None]
) -> list[Any]:
    """Check the changes of one resource and return their records. Raises KafkaError, and then nothing is changed."""
    if kind == TOPIC_RESOURCE:
        return _alter_topic(image, name, changes)
    if kind == BROKER_RESOURCE:
        return _alter_broker(image, name, changes)
    check_resource_type(kind)
    return _alter_group(image, static, name, changes)


def check_resource_type(kind: int) -> None:
    """Raises KafkaError: resources of this type have no configurations here."""
    if kind not in (TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE):
        code = ErrorCode.INVALID_REQUEST if kind in RESOURCE_TYPES else ErrorCode.UNSUPPORTED_VERSION
        raise KafkaError(code, f"resource type {kind} has no configurations here")


def _alter_topic(image: Image, topic: str, changes: Mapping[str, str | None]) -> list[Any]:
    if not topic:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    wrong = topic_name_error(topic)
    if wrong is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    given = {key: value for key, value in changes.items() if value is not None}
    stored = image.configs.get((TOPIC_RESOURCE, topic), {})
    validate_topic_configs(given, {key: value for key, value in stored.items() if key not in changes})
    if topic not in image.topic_ids:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
    new = {key: value for key, value in changes.items() if image.config(TOPIC_RESOURCE, topic, key) != value}
    return config_records(image, TOPIC_RESOURCE, topic, new)


def _alter_broker(image: Image, broker: str, changes: Mapping[str, str | None]) -> list[Any]:
    if MIN_ISR in changes and image.elr_enabled:
        _check_min_isr(broker, changes[MIN_ISR])
    if broker != CLUSTER_DEFAULT:
        _check_node(image, broker)
    check_server_values(broker, changes)
    # a repeated value is written again, as on Kafka: a repeated cluster-wide min ISR clears every ELR
    return config_records(image, BROKER_RESOURCE, broker, changes)


def _check_node(image: Image, name: str) -> None:
    if not name.isdecimal() or name != str(int(name)):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid broker name {name}: expected a node id, or nothing")
    node = BrokerId(int(name))
    if node not in image.brokers and node not in image.controllers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _alter_group(image: Image, static: StaticConfig, group: str, changes: Mapping[str, str | None]) -> list[Any]:
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    stored = image.configs.get((GROUP_RESOURCE, group), {})
    then = {key: value for key, value in {**stored, **changes}.items() if value is not None}
    validate_group_configs(then, static)
    return config_records(
        image, GROUP_RESOURCE, group, {key: value for key, value in changes.items() if stored.get(key) != value}
    )


def check_server_values(broker: str, changes: Mapping[str, str | None]) -> None:
    """Raises KafkaError INVALID_REQUEST for a value that a broker cannot use (a topic's bad value is INVALID_CONFIG).

    Brokers check this before they forward the request, as on Kafka. The controller checks it again, for clients that
    send their request to it.
    """
    for key, value in changes.items():
        if value is not None:
            _check_server_value(broker, key, value)


def _check_server_value(broker: str, key: str, value: str) -> None:
    definition = SERVER_CONFIGS.get(key) or limit_of_listener(key) or store_of_listener(key)
    if definition is None and not is_setting_of_listener(key):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown broker config name: {key}")
    if key in STORES:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"listener.name.<listener>.{key}",
        )
    if definition is None or (key in OF_SECURITY and definition.update is Update.PER_BROKER):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update {key} dynamically: of TLS and SASL only the key and trust stores of a listener can change "
            "while a node runs. Change the file and restart the node",
        )
    if definition.update is Update.READ_ONLY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {key}")
    if definition.update is Update.PER_BROKER and broker == CLUSTER_DEFAULT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs at default cluster level: {key}")
    try:
        definition.parse(value)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None


def _check_min_isr(broker: str, value: str | None) -> None:
    if broker != CLUSTER_DEFAULT:
        raise ConfigError(MIN_ISR, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
    if value is None:
        raise ConfigError(MIN_ISR, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
