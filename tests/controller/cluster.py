"""Short ways to say what brokers and clients ask of a controller."""

from __future__ import annotations

from typing import Any

from controller.fakes import CLUSTER, Harness

from heirlog.metadata.state import PartitionRegistration
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
)
from heirlog.protocol.types import Uuid
from heirlog.testing.conformance.controller_layer import directory, incarnation

FAR = 10**9
"""A metadata offset that every broker may claim to have applied."""


def leading(brokers: int = 3, **config: str) -> Harness:
    """An active controller with that many unfenced brokers, ids from 1."""
    harness = Harness(**config)
    harness.lead()
    harness.commit()
    for broker in range(1, brokers + 1):
        register(harness, broker)
        heartbeat(harness, broker)
    return harness


def registration(broker: int, life: int = 0, previous: int = -1, **more: Any) -> BrokerRegistrationRequest:
    values: dict[str, Any] = {
        "cluster_id": CLUSTER,
        "incarnation_id": incarnation(broker, life),
        "features": [
            BrokerRegistrationRequest.Feature(
                name="metadata.version", min_supported_version=23, max_supported_version=29
            ),
            BrokerRegistrationRequest.Feature(
                name="eligible.leader.replicas.version", min_supported_version=0, max_supported_version=1
            ),
            BrokerRegistrationRequest.Feature(
                name="transaction.version", min_supported_version=0, max_supported_version=2
            ),
            BrokerRegistrationRequest.Feature(name="group.version", min_supported_version=0, max_supported_version=1),
            BrokerRegistrationRequest.Feature(name="share.version", min_supported_version=0, max_supported_version=1),
        ],
        "log_dirs": [directory(broker, 0)],
        "previous_broker_epoch": previous,
    }
    return BrokerRegistrationRequest(broker_id=broker, **(values | more))


def register(harness: Harness, broker: int, life: int = 0, previous: int = -1, **more: Any) -> Any:
    return harness.ask("broker_registration", registration(broker, life, previous, **more), 4)


def epoch_of(harness: Harness, broker: int) -> int:
    return int(harness.controller.image.brokers[broker].epoch)  # type: ignore[index]


def heartbeat(harness: Harness, broker: int, connection: object = None, **more: Any) -> Any:
    values: dict[str, Any] = {"broker_epoch": epoch_of(harness, broker), "current_metadata_offset": FAR}
    request = BrokerHeartbeatRequest(broker_id=broker, **(values | more))
    return harness.ask("broker_heartbeat", request, 1, connection)


def topic_request(name: str, partitions: int = 1, factor: int = 3, **configs: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=factor,
                configs=[
                    CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ]
    )


def create(harness: Harness, name: str = "foo", partitions: int = 1, factor: int = 3, **configs: str) -> Any:
    (result,) = harness.ask("create_topics", topic_request(name, partitions, factor, **configs), 7).topics
    return result


def state_of(harness: Harness, topic: str = "foo", partition: int = 0) -> PartitionRegistration:
    state = harness.controller.image.partition_named(topic, partition)
    assert state is not None
    return state


def assign(harness: Harness, broker: int, log_dir: Uuid, *partitions: int, topic: str = "foo", epoch: int = -1) -> Any:
    """The broker reports where these replicas of a topic lie; the answers' codes, in the order of the partitions."""
    partition = AssignReplicasToDirsRequest.PartitionData
    one = AssignReplicasToDirsRequest.TopicData(
        topic_id=harness.controller.image.topic_ids.get(topic, Uuid(topic.encode().ljust(16)[:16])),
        partitions=[partition(partition_index=index) for index in partitions],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=broker,
        broker_epoch=epoch_of(harness, broker) if epoch < 0 else epoch,
        directories=[AssignReplicasToDirsRequest.DirectoryData(id=log_dir, topics=[one])],
    )
    answer = harness.ask("assign_replicas_to_dirs", request, 0)
    if answer.error_code:
        return ErrorCode(answer.error_code).name
    (received,) = answer.directories
    assert received.id == log_dir
    return [ErrorCode(result.error_code).name for result in received.topics[0].partitions]


def alter(harness: Harness, isr: list[int], topic: str = "foo", partition: int = 0, **more: Any) -> Any:
    """An honest AlterPartition of the current leader; the partition's answer."""
    image, state = harness.controller.image, state_of(harness, topic, partition)
    values: dict[str, Any] = {
        "partition_index": partition,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": [
            AlterPartitionRequest.BrokerState(broker_id=broker, broker_epoch=epoch_of(harness, broker))
            for broker in isr
        ],
    }
    request = AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=epoch_of(harness, state.leader),
        topics=[
            AlterPartitionRequest.TopicData(
                topic_id=image.topic_ids[topic], partitions=[AlterPartitionRequest.PartitionData(**(values | more))]
            )
        ],
    )
    return harness.ask("alter_partition", request, 3).topics[0].partitions[0]
