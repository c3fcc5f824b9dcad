"""The metadata records of a file's setup: levels, brokers, partitions, configurations.

Ids that a file does not name are made from numbers that it names: the id of a directory from broker and index, the id
of an incarnation from broker and count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from heirlog.metadata.config_def import StaticConfig, parse_static
from heirlog.metadata.features import MANAGER_ENABLED, SUPPORTED_FEATURES
from heirlog.metadata.image import BROKER_RESOURCE, METADATA_VERSION, TOPIC_RESOURCE
from heirlog.metadata.state import RECOVERED, RECOVERING
from heirlog.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from heirlog.protocol.types import Uuid
from heirlog.testing.conformance.vocabulary import UnknownName

Members = Mapping[str, Any]

CONTROLLER_ID: Final = 3000
LISTENER: Final = "PLAINTEXT"
PORT: Final = 9092
"""Where brokers listen."""

RECOVERY_STATES: Final = {"RECOVERED": RECOVERED, "RECOVERING": RECOVERING}
BROKER_STATES: Final = ("unfenced", "fenced", "controlled_shutdown")


def static_config(given: Mapping[str, str], manager: bool) -> StaticConfig:
    """The controller's server.properties; `manager`: the unclean recovery manager."""
    properties = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "listeners": "CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER_ID}@localhost:9093",
        "heirlog.broker.disconnect.grace.ms": "-1",
        **given,
    }
    return parse_static({**properties, MANAGER_ENABLED: str(manager).lower()})


def directory(broker: int, index: int) -> Uuid:
    return Uuid(b"dir" + bytes([index]) + broker.to_bytes(12, "big"))


def incarnation(broker: int, number: int) -> Uuid:
    return Uuid(b"inc" + bytes([number]) + broker.to_bytes(12, "big"))


def setup_records(setup: Members, config: Members) -> list[Any]:
    """config: by `topic`, `broker` and `cluster`."""
    levels = setup.get("features", {})
    records: list[Any] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in sorted(levels.items())]
    records += [broker_record(broker) for broker in setup.get("brokers", [])]
    topics: dict[str, Uuid] = {}
    for partition in setup.get("partitions", []):
        name = partition.get("topic", "foo")
        if name not in topics:
            topics[name] = Uuid(len(topics).to_bytes(16, "big"))
            records.append(TopicRecord(name=name, topic_id=topics[name]))
        records.append(partition_record(partition, topics[name]))
    for name, values in {"": config.get("cluster", {}), **config.get("broker", {})}.items():
        records += config_records(BROKER_RESOURCE, name, values)
    for name, values in config.get("topic", {}).items():
        records += config_records(TOPIC_RESOURCE, name, values)
    return records


def broker_record(broker: Members) -> RegisterBrokerRecord:
    number, state = broker["id"], broker.get("state", "unfenced")
    if state not in BROKER_STATES:
        raise UnknownName(f"setup: broker state {state}")
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=incarnation(number, 0),
        broker_epoch=broker.get("epoch", 100 + number),
        fenced=state == "fenced",
        in_controlled_shutdown=state == "controlled_shutdown",
        end_points=[RegisterBrokerRecord.BrokerEndpoint(name=LISTENER, host=f"broker-{number}", port=PORT)],
        features=[
            RegisterBrokerRecord.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in broker_features().items()
        ],
        log_dirs=[directory(number, index) for index in range(broker.get("logDirs", 1))],
    )


def broker_features() -> dict[str, tuple[int, int]]:
    """What every broker here supports: from the oldest metadata.version on, because a setup may begin there."""
    ranges = {name: (levels.min_version, levels.max_version) for name, levels in SUPPORTED_FEATURES.items()}
    return ranges | {METADATA_VERSION: (7, SUPPORTED_FEATURES[METADATA_VERSION].max_version)}


def partition_record(partition: Members, topic_id: Uuid) -> PartitionRecord:
    replicas = partition["replicas"]
    indexes = partition.get("dirIndex", [0] * len(replicas))
    return PartitionRecord(
        partition_id=partition.get("partition", 0),
        topic_id=topic_id,
        replicas=replicas,
        isr=partition["isr"],
        removing_replicas=partition.get("removing", []),
        adding_replicas=partition.get("adding", []),
        leader=partition["leader"],
        leader_recovery_state=RECOVERY_STATES[partition.get("leaderRecoveryState", "RECOVERED")],
        leader_epoch=partition["leaderEpoch"],
        partition_epoch=partition["partitionEpoch"],
        directories=[directory(replica, index) for replica, index in zip(replicas, indexes, strict=True)],
        eligible_leader_replicas=partition.get("elr", []),
        last_known_elr=partition.get("lastKnownElr", []),
    )


def config_records(kind: int, name: str, values: Mapping[str, str]) -> list[ConfigRecord]:
    return [
        ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value) for key, value in values.items()
    ]
