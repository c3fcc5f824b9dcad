"""Requests that change topics, configurations and logs, in every version, with a codec of kio's."""

from __future__ import annotations

from typing import Any

import pytest
from clients.test_wire_data import batch, produce
from clients.world import World

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def configs(world: World, topic: str) -> dict[str, str]:
    """What is stored for the topic, once every broker shows it: a change is answered before they all know it."""
    asked = [{"resource_type": TOPIC, "resource_name": topic, "configuration_keys": None}]

    def shown(broker: int) -> dict[str, str]:
        with world.broker(broker) as wire_client:
            found = wire_client.ask("describe_configs", 4, resources=asked).results[0].configs
        return {entry.name: entry.value for entry in found if entry.config_source == 1}

    return world.eventually(lambda: agreed([shown(broker) for broker in world.cluster.brokers]))[0]


def agreed(answers: list[Any]) -> list[Any]:
    return answers if all(answer == answers[0] for answer in answers) else []


def one(answers: Any) -> tuple[str, str | None]:
    (answer,) = answers
    return answer.error_code.name, getattr(answer, "error_message", None)


# -- CreatePartitions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", range(4))
def test_create_partitions(world: World, version: int, forwarded: bool) -> None:
    topic = world.topic(replicas=[1, 2])
    ask = world.ask if forwarded else world.ask_controller

    def grown(count: int, assignments: Any = None, validate_only: bool = False) -> Any:
        asked = [{"name": topic, "count": count, "assignments": assignments}]
        return one(ask("create_partitions", version, topics=asked, timeout=5000, validate_only=validate_only).results)

    assert grown(3, validate_only=True) == ("none", None)
    assert grown(3, [{"broker_ids": [2, 3]}, {"broker_ids": [3, 1]}]) == ("none", None)
    assert grown(3) == ("invalid_partitions", "Topic already has 3 partition(s).")
    assert grown(-1)[0] == "invalid_partitions"
    assert grown(4, [{"broker_ids": [9, 1]}])[0] == "invalid_replica_assignment"
    world.eventually(lambda: len(world.metadata(topic).partitions) == 3)
    assert [p.replica_nodes for p in world.metadata(topic).partitions] == [(1, 2), (2, 3), (3, 1)]


def test_new_partitions_take_records(world: World) -> None:
    topic = world.topic()
    world.ask("create_partitions", 3, topics=[{"name": topic, "count": 2, "assignments": None}], timeout=5000)
    world.eventually(lambda: len(world.metadata(topic).partitions) == 2)
    world.eventually(lambda: produce(world, topic, batch(1), partition=1).error_code.value == 0)


def test_partitions_of_a_topic_that_is_not_there(world: World) -> None:
    answer = world.ask("create_partitions", 3, topics=[{"name": "nowhere", "count": 2, "assignments": None}])
    assert one(answer.results)[0] == "unknown_topic_or_partition"


# -- AlterConfigs, IncrementalAlterConfigs ---------------------------------------------------------------------------


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_what_is_stored(world: World, version: int, forwarded: bool) -> None:
    topic = world.topic(retention_ms="1000")
    ask = world.ask if forwarded else world.ask_controller

    def altered(values: dict[str, str | None], validate_only: bool = False) -> Any:
        resource = {
            "resource_type": TOPIC,
            "resource_name": topic,
            "configs": [{"name": name, "value": value} for name, value in values.items()],
        }
        return one(ask("alter_configs", version, resources=[resource], validate_only=validate_only).responses)

    assert altered({}, validate_only=True) == ("none", None)
    assert configs(world, topic) == {"retention.ms": "1000"}
    assert altered({"segment.ms": "5000", "flush.ms": "7"}) == ("none", None)
    world.eventually(lambda: configs(world, topic) == {"segment.ms": "5000", "flush.ms": "7"})
    assert altered({"segment.ms": "x"})[0] == "invalid_config"
    without_value = altered({"segment.ms": None}, validate_only=True)[0]
    assert without_value == ("invalid_request" if forwarded else "none")
    assert altered({"nothing": "x"}) == ("invalid_config", "Unknown topic config name: nothing")


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", range(2))
def test_incremental_alter_configs(world: World, version: int, forwarded: bool) -> None:
    topic = world.topic(retention_ms="1000")
    ask = world.ask if forwarded else world.ask_controller

    def altered(name: str, operation: int, value: str | None = None) -> Any:
        resource = {
            "resource_type": TOPIC,
            "resource_name": topic,
            "configs": [{"name": name, "config_operation": operation, "value": value}],
        }
        return one(ask("incremental_alter_configs", version, resources=[resource]).responses)

    replicas = "leader.replication.throttled.replicas"
    assert altered("segment.ms", SET, "5000") == ("none", None)
    assert altered("retention.ms", DELETE) == ("none", None)
    assert altered(replicas, APPEND, "0:1,0:2") == ("none", None)
    assert altered(replicas, SUBTRACT, "0:1") == ("none", None)
    world.eventually(lambda: configs(world, topic) == {"segment.ms": "5000", replicas: "0:2"})
    assert altered("segment.ms", APPEND, "1")[0] == "invalid_config"
    assert altered("segment.ms", 9, "1")[0] == "invalid_request"


def test_a_broker_takes_its_own_configuration_and_sends_on_the_rest(world: World) -> None:
    """One request for the broker that is asked, another one, no broker, and a topic: answers in the order of it."""
    topic = world.topic()

    def resource(kind: int, name: str, key: str, value: str) -> dict[str, Any]:
        return {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": SET, "value": value}],
        }

    with world.broker(2) as wire_client:
        answer = wire_client.ask(
            "incremental_alter_configs",
            1,
            resources=[
                resource(BROKER, "3", "leader.replication.throttled.rate", "1000"),
                resource(BROKER, "2", "leader.replication.throttled.rate", "1000"),
                resource(BROKER, "two", "leader.replication.throttled.rate", "1000"),
                resource(TOPIC, topic, "flush.ms", "9"),
                resource(BROKER, "2 ", "log.dirs", "/x"),
                resource(BROKER, "", "num.io.threads", "17"),
            ],
        )
        assert [(r.resource_name, r.error_code.name, r.error_message) for r in answer.responses] == [
            ("3", "invalid_request", "Unexpected broker id, expected 2, but received 3"),
            ("2", "none", None),
            ("two", "invalid_request", "Node id must be an integer, but it is: two"),
            (topic, "none", None),
            ("2 ", "invalid_request", "Node id must be an integer, but it is: 2 "),
            (
                "",
                "invalid_request",
                "Dynamic thread count update validation failed for num.io.threads=17, "
                "value should not be greater than double the current value 8",
            ),
        ]
        only_others = wire_client.ask("incremental_alter_configs", 1, resources=[resource(BROKER, "1", "x", "y")])
        assert one(only_others.responses)[0] == "invalid_request"
        undone = {
            "resource_type": BROKER,
            "resource_name": "2",
            "configs": [{"name": "leader.replication.throttled.rate", "config_operation": DELETE, "value": None}],
        }
        assert one(wire_client.ask("incremental_alter_configs", 1, resources=[undone]).responses)[0] == "none"


# -- loggers ---------------------------------------------------------------------------------------------------------


def loggers(wire_client: Any, node: str) -> Any:
    asked = [{"resource_type": LOGGER, "resource_name": node, "configuration_keys": None}]
    return wire_client.ask("describe_configs", 4, resources=asked).results[0]


def set_logger(wire_client: Any, node: str, name: str, operation: int, value: str | None = None) -> tuple[str, Any]:
    change = {"name": name, "config_operation": operation, "value": value}
    asked = [{"resource_type": LOGGER, "resource_name": node, "configs": [change]}]
    return one(wire_client.ask("incremental_alter_configs", 1, resources=asked).responses)


@pytest.mark.parametrize("node", [2, 100])
def test_each_node_answers_for_its_own_loggers(world: World, node: int) -> None:
    name = str(node)
    with world.controller() if node == 100 else world.broker(node) as wire_client:

        def levels() -> dict[str, str]:
            return {entry.name: entry.value for entry in loggers(wire_client, name).configs}

        before = levels()
        assert set(before.values()) == {"INFO"} and {"root", "heirlog.broker", "heirlog.raft"} <= set(before)
        assert {entry.config_source for entry in loggers(wire_client, name).configs} == {6}
        assert set_logger(wire_client, name, "heirlog.raft", SET, "DEBUG") == ("none", None)
        assert levels() == {**before, "heirlog.raft": "DEBUG"}
        assert set_logger(wire_client, name, "heirlog.raft", DELETE) == ("none", None)
        assert levels() == before
        assert set_logger(wire_client, name, "no.such", SET, "DEBUG")[0] == "invalid_config"
        assert set_logger(wire_client, name, "root", SET, "LOUD")[0] == "invalid_config"
        assert set_logger(wire_client, name, "root", DELETE)[0] == "invalid_request"
        assert set_logger(wire_client, name, "root", APPEND, "DEBUG")[0] == "invalid_request"
        assert set_logger(wire_client, "3", "root", SET, "DEBUG")[0] == "invalid_request"
        assert loggers(wire_client, "3").error_code.name == "invalid_request"
        assert levels() == before


def test_log_level_changes_while_nodes_run(world: World) -> None:
    """On one broker, and, with the controller, everywhere."""

    def change(resource: str, operation: int, value: str | None = None) -> None:
        config = {"name": "log.level", "config_operation": operation, "value": value}
        asked = [{"resource_type": BROKER, "resource_name": resource, "configs": [config]}]
        assert one(world.ask_controller("incremental_alter_configs", 1, resources=asked).responses)[0] == "none"

    def root(node: int) -> str:
        with world.controller() if node == 100 else world.broker(node) as wire_client:
            return {entry.name: entry.value for entry in loggers(wire_client, str(node)).configs}["root"]

    change("2", SET, "debug")
    world.eventually(lambda: [root(1), root(2), root(100)] == ["INFO", "DEBUG", "INFO"])
    change("", SET, "WARN")
    world.eventually(lambda: [root(1), root(2), root(100)] == ["WARN", "DEBUG", "WARN"])
    change("2", DELETE)
    change("", DELETE)
    world.eventually(lambda: [root(1), root(2), root(100)] == ["INFO", "INFO", "INFO"])


# -- ListConfigResources ---------------------------------------------------------------------------------------------


def test_list_config_resources(world: World) -> None:
    topic = world.topic()
    assert world.ask("list_config_resources", 0).config_resources == ()

    def listed(*types: int) -> list[tuple[int, str]]:
        answer = world.ask("list_config_resources", 1, resource_types=list(types))
        assert answer.error_code.value == 0
        return [(found.resource_type, found.resource_name) for found in answer.config_resources]

    brokers = [(BROKER, "1"), (BROKER, "2"), (BROKER, "3")]
    assert listed(BROKER, BROKER) == brokers
    assert listed(LOGGER) == [(LOGGER, name) for _, name in brokers]
    assert (TOPIC, topic) in listed(TOPIC) and not set(brokers) & set(listed(TOPIC))
    assert {(TOPIC, topic), *brokers} <= set(listed())
    assert (listed(16), listed(GROUP)) == ([], [])
    group = world.name("group")
    change = {"name": "consumer.session.timeout.ms", "config_operation": SET, "value": "50000"}
    asked = [{"resource_type": GROUP, "resource_name": group, "configs": [change]}]
    assert one(world.ask("incremental_alter_configs", 1, resources=asked, validate_only=False).responses) == (
        "none",
        None,
    )
    world.eventually(lambda: listed(GROUP) == [(GROUP, group)])
    (described,) = world.ask(
        "describe_configs", 4, resources=[{"resource_type": GROUP, "resource_name": group}]
    ).results
    received = {entry.name: (entry.value, entry.config_source) for entry in described.configs}
    assert received["consumer.session.timeout.ms"] == ("50000", 8)
    assert received["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert world.ask("list_config_resources", 1, resource_types=[3]).error_code.name == "unsupported_version"


def test_a_group_without_configurations_any_more_is_not_listed(world: World) -> None:
    group = world.name("group")

    def changed(operation: int, value: str | None) -> bool:
        change = {"name": "consumer.session.timeout.ms", "config_operation": operation, "value": value}
        asked = [{"resource_type": GROUP, "resource_name": group, "configs": [change]}]
        answer = world.ask("incremental_alter_configs", 1, resources=asked, validate_only=False)
        assert one(answer.responses) == ("none", None)
        listed = world.ask("list_config_resources", 1, resource_types=[GROUP]).config_resources
        return group in {found.resource_name for found in listed}

    assert changed(SET, "50000")
    assert not changed(DELETE, None)


# -- DeleteRecords ---------------------------------------------------------------------------------------------------


def delete(world: World, topic: str, offset: int, version: int = 2, partition: int = 0, on: int | None = None) -> Any:
    asked = [{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}]
    with world.broker(world.leader(topic) if on is None else on) as wire_client:
        answer = wire_client.ask("delete_records", version, topics=asked, timeout=10_000)
    (found,) = answer.topics[0].partitions
    return found.error_code.name, found.low_watermark


def log_start(world: World, topic: str) -> int:
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}
    answer = world.ask_leader(topic, "list_offsets", 7, replica_id=-1, topics=[{"name": topic, "partitions": [asked]}])
    found: int = answer.topics[0].partitions[0].offset
    return found


@pytest.mark.parametrize("version", range(3))
def test_delete_records(world: World, version: int) -> None:
    topic = world.topic()
    assert produce(world, topic, batch(10)).error_code.value == 0
    assert delete(world, topic, 4, version) == ("none", 4)
    assert log_start(world, topic) == 4
    assert delete(world, topic, 2, version) == ("none", 4)
    assert delete(world, topic, 11, version) == ("offset_out_of_range", -1)
    assert delete(world, topic, -2, version) == ("offset_out_of_range", -1)
    assert delete(world, topic, -1, version) == ("none", 10)
    assert log_start(world, topic) == 10
    assert delete(world, topic, 0, version, partition=7) == ("unknown_topic_or_partition", -1)


def test_records_are_deleted_by_the_leader_only(world: World) -> None:
    topic = world.topic(replicas=[1, 2])
    assert delete(world, topic, 0, on=2) == ("not_leader_or_follower", -1)
    assert delete(world, topic, 0, on=3) == ("not_leader_or_follower", -1)


def test_records_of_a_compacted_topic_stay(world: World) -> None:
    topic = world.topic(cleanup_policy="compact")
    assert produce(world, topic, batch(3)).error_code.value == 0
    assert delete(world, topic, 1) == ("policy_violation", -1)


# -- DescribeLogDirs, DescribeProducers ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_log_dirs(world: World, version: int) -> None:
    topic = world.topic(partitions=2, replicas=[1, 2])
    records = batch(3)
    assert produce(world, topic, records).error_code.value == 0
    for broker, expected in ((1, {0: len(records), 1: 0}), (3, {})):
        with world.broker(broker) as wire_client:
            answer = wire_client.ask("describe_log_dirs", version, topics=[{"topic": topic, "partitions": [0, 1, 7]}])
        (directory,) = answer.results
        assert directory.log_dir == str(world.cluster.data / f"broker-{broker}" / "log")
        found = {p.partition_index: p.partition_size for named in directory.topics for p in named.partitions}
        assert found == expected
        if version >= 4:
            assert directory.total_bytes > directory.usable_bytes > 0
    everything = world.ask("describe_log_dirs", version, topics=None).results[0].topics
    assert topic in [found.name for found in everything]


def test_describe_producers(world: World) -> None:
    topic = world.topic()
    assert produce(world, topic, batch(3, producer_id=77, producer_epoch=2, base_sequence=0)).error_code.value == 0
    asked = [{"name": topic, "partition_indexes": [0, 9]}]
    known, unknown = world.ask_leader(topic, "describe_producers", 0, topics=asked).topics[0].partitions
    (producer,) = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (77, 2, 2)
    assert unknown.error_code.name == "unknown_topic_or_partition"


@pytest.mark.parametrize("version", range(3))
def test_list_transactions(world: World, version: int) -> None:
    asked = {"state_filters": ["Ongoing", "Hanging"], "producer_id_filters": [2**40]}
    answer = world.ask("list_transactions", version, **asked)
    assert (answer.error_code.value, answer.unknown_state_filters, answer.transaction_states) == (0, ("Hanging",), ())
    assert world.ask("list_transactions", version).error_code.value == 0
    if version == 2:
        assert world.ask("list_transactions", 2, transactional_id_pattern=r"\p{L}+-[0-9]*").error_code.value == 0
        refused = world.ask("list_transactions", 2, transactional_id_pattern="(")
        assert refused.error_code.name == "invalid_regular_expression"
