"""Whatever a client has changed, it may ask any broker for next."""

from __future__ import annotations

import pytest
from clients.world import World

TOPIC = 2
SET = 0


def asked_of(world: World, broker: int, topic: str) -> str:
    with world.broker(broker) as wire_client:
        name: str = wire_client.ask("metadata", 12, topics=[{"name": topic}]).topics[0].error_code.name
        return name


@pytest.mark.parametrize("through", ["broker", "controller"])
def test_every_broker_knows_a_topic_once_its_creation_or_deletion_is_answered(world: World, through: str) -> None:
    ask = world.ask if through == "broker" else world.ask_controller
    for _ in range(10):
        name = world.name()
        new = {"name": name, "num_partitions": 3, "replication_factor": 3, "assignments": [], "configs": []}
        assert ask("create_topics", 7, topics=[new], timeout=20_000).topics[0].error_code.value == 0
        assert [asked_of(world, broker, name) for broker in (1, 2, 3)] == ["none"] * 3
        gone = ask("delete_topics", 6, topics=[{"name": name}], timeout=20_000)
        assert gone.responses[0].error_code.value == 0
        assert [asked_of(world, broker, name) for broker in (1, 2, 3)] == ["unknown_topic_or_partition"] * 3


def test_every_broker_knows_a_configuration_once_its_change_is_answered(world: World) -> None:
    topic = world.topic()
    for value in ("1001", "1002", "1003"):
        change = {"name": "retention.ms", "config_operation": SET, "value": value}
        resource = {"resource_type": TOPIC, "resource_name": topic, "configs": [change]}
        answer = world.ask("incremental_alter_configs", 1, resources=[resource], validate_only=False)
        assert answer.responses[0].error_code.value == 0
        for broker in (1, 2, 3):
            asked = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
            with world.broker(broker) as wire_client:
                (config,) = wire_client.ask("describe_configs", 4, resources=[asked]).results[0].configs
            assert config.value == value


def test_every_broker_knows_new_partitions_once_they_are_answered(world: World) -> None:
    topic = world.topic()
    for count in (2, 3, 4):
        more = {"name": topic, "count": count, "assignments": None}
        assert world.ask("create_partitions", 3, topics=[more], timeout=20_000).results[0].error_code.value == 0
        for broker in (1, 2, 3):
            with world.broker(broker) as wire_client:
                found = wire_client.ask("metadata", 12, topics=[{"name": topic}]).topics[0].partitions
            assert [p.error_code.value for p in found] == [0] * count
