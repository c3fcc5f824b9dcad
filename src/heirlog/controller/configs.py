"""Changes of dynamic configurations, and what a change of `min.insync.replicas` drags behind it.

While ELR is on, every ConfigRecord of that name is followed by a ClearElr in the same batch: for the topic, or ("": for
all topics) for a cluster-wide value. Lists made under one min ISR prove nothing under another one.

* A topic-level request that repeats the stored value writes nothing; a cluster-level one always writes, hence clears.
* A broker-level value is refused, set or delete: brokers and controller must resolve the same min ISR.
* The cluster-level value cannot be deleted: without it each node would fall back to its own file.

Source: KIP-966, "Other behaviors"; KAFKA-16540.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heirlog.metadata.definition import ConfigError, Update
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.min_isr import MIN_ISR
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.metadata.topic_configs import validate_topic_configs
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.records import ClearElrRecord, ConfigRecord

CLUSTER_DEFAULT = ""
"""Name of the broker resource that stands for all brokers."""


def config_records(image: Image, kind: int, name: str, changes: Mapping[str, str | None]) -> list[Any]:
    """The records that make `changes` (None deletes), unchecked; ClearElr behind them where it belongs."""
    records: list[Any] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value) for key, value in changes.items()
    ]
    if MIN_ISR in changes and image.elr_enabled:
        records.append(ClearElrRecord(topic_name=name if kind == TOPIC_RESOURCE else ""))
    return records


def alter_configs(image: Image, kind: int, name: str, changes: Mapping[str, str | None]) -> list[Any]:
    """Check and make the changes of one resource. Raises KafkaError; nothing is changed then."""
    if kind == TOPIC_RESOURCE:
        return _alter_topic(image, name, changes)
    if kind == BROKER_RESOURCE:
        return _alter_broker(image, name, changes)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resource type {kind} has no configurations here")


def _alter_topic(image: Image, topic: str, changes: Mapping[str, str | None]) -> list[Any]:
    if topic not in image.topic_ids:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
    validate_topic_configs({key: value for key, value in changes.items() if value is not None})
    new = {key: value for key, value in changes.items() if image.config(TOPIC_RESOURCE, topic, key) != value}
    return config_records(image, TOPIC_RESOURCE, topic, new)


def _alter_broker(image: Image, broker: str, changes: Mapping[str, str | None]) -> list[Any]:
    for key, value in changes.items():
        definition = SERVER_CONFIGS.get(key)
        if definition is None:
            raise ConfigError(key, f"Unknown broker config name: {key}")
        if definition.update is Update.READ_ONLY:
            raise ConfigError(key, f"Cannot update these configs dynamically: {key}")
        if definition.update is Update.PER_BROKER and broker == CLUSTER_DEFAULT:
            raise ConfigError(key, f"Cannot update these configs at default cluster level: {key}")
        if key == MIN_ISR and image.elr_enabled:
            _check_min_isr(broker, value)
        if value is not None:
            definition.parse(value)
    new = {
        key: value
        for key, value in changes.items()
        # a repeated cluster-wide min ISR is written again, as Kafka does: operators use it to clear every ELR
        if (key == MIN_ISR and broker == CLUSTER_DEFAULT) or image.config(BROKER_RESOURCE, broker, key) != value
    }
    return config_records(image, BROKER_RESOURCE, broker, new)


def _check_min_isr(broker: str, value: str | None) -> None:
    if broker != CLUSTER_DEFAULT:
        raise ConfigError(MIN_ISR, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
    if value is None:
        raise ConfigError(MIN_ISR, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
