"""Configurations: what server.properties may say, what counts for a topic, and what DescribeConfigs shows."""

from __future__ import annotations

import pytest

from heirlog.metadata.apply import apply, apply_all
from heirlog.metadata.config_def import ConfigError, StaticConfig, parse_static
from heirlog.metadata.configs import (
    ConfigSource,
    describe,
    describe_broker,
    describe_topic,
    listener_limit,
    server_value,
    topic_value,
    topic_values,
)
from heirlog.metadata.definition import ConfigType
from heirlog.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from heirlog.metadata.min_isr import min_isr_of
from heirlog.metadata.topic_configs import TOPIC_CONFIGS, validate_topic_configs
from heirlog.protocol.records import ConfigRecord, PartitionRecord, TopicRecord
from heirlog.protocol.types import Endpoint

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}
FOO = b"f" * 16


def node(**more: str) -> StaticConfig:
    return parse_static(BASE | {name.replace("_", "."): value for name, value in more.items()})


def image_of(*configs: ConfigRecord) -> Image:
    image = Image()
    apply_all(image, [TopicRecord(name="foo", topic_id=FOO), *configs], 0, 1)
    return image


def config(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def test_a_combined_node_knows_its_listeners_and_what_it_advertises() -> None:
    static = node()
    assert static.is_broker and static.is_controller
    assert [listener.name for listener in static.listeners] == ["PLAINTEXT"]
    assert [listener.name for listener in static.controller_listeners] == ["CONTROLLER"]
    assert static.advertised_listeners[0].endpoint == Endpoint("localhost", 9092)


def test_a_controller_advertises_the_address_that_advertised_listeners_names() -> None:
    everywhere = {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093"}
    static = parse_static(BASE | everywhere | {"advertised.listeners": "PLAINTEXT://a:19092,CONTROLLER://a:19093"})
    assert [listener.endpoint for listener in static.advertised_listeners] == [Endpoint("a", 19092)]
    assert [listener.endpoint for listener in static.advertised_controller_listeners] == [Endpoint("a", 19093)]

    static = parse_static(BASE | everywhere | {"advertised.listeners": "PLAINTEXT://a:19092"})
    assert [listener.endpoint for listener in static.advertised_controller_listeners] == [Endpoint("localhost", 9093)]


def test_a_broker_that_listens_everywhere_has_to_say_where_clients_connect() -> None:
    with pytest.raises(ConfigError, match=r"advertised.listeners is missing: PLAINTEXT listens on every address"):
        parse_static(BASE | {"listeners": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://:9093"})


def test_defaults_are_kafkas() -> None:
    static = node()
    assert static["log.segment.bytes"] == 1_073_741_824
    assert static["broker.session.timeout.ms"] == 9000
    assert static["log.retention.ms"] is None
    assert static.log_dirs == ("/tmp/kafka-logs",) and static.metadata_log_dir == "/tmp/kafka-logs"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("min.insync.replica", "2", "min.insync.replica is not a configuration"),
        ("zookeeper.connect", "x", "zookeeper.connect is not a configuration"),
        ("min.insync.replicas", "0", "min.insync.replicas: value must be at least 1"),
        ("num.partitions", "many", "num.partitions: not a number"),
        ("auto.create.topics.enable", "yes", "auto.create.topics.enable: expected true or false"),
        ("log.cleanup.policy", "compress", "log.cleanup.policy"),
        ("unclean.recovery.strategy", "Manual", "expected one of Aggressive, Balanced, None"),
        ("unclean.recovery.timeout.ms", "-1", "value must be at least 0"),
        ("listener.security.protocol.map", "PLAINTEXT=SSL", "not of the form NAME:PROTOCOL"),
        ("listeners", "CONTROLLER://:9093", "needs a listener for its clients"),
        ("listeners", "PLAINTEXT:9092", "not of the form NAME://host:port"),
        ("controller.quorum.voters", "localhost:9093", "not of the form id@host:port"),
        ("process.roles", "broker,broker", "names a role twice"),
        ("node.id", "-1", "node.id: value must be at least 0"),
        ("inter.broker.listener.name", "INTERNAL", "INTERNAL is not among the listeners"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:9092", "needs an address"),
        ("advertised.listeners", "PLAINTEXT://a:9092,CONTROLLER://[::]:9093", "CONTROLLER needs an address"),
        ("compression.type", "none", "expected one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "value must be no more than 17"),
        ("compression.zstd.level", "23", "value must be no more than 22"),
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer", "heirlog has one authorizer: org.apache."),
        ("super.users", "User:admin;alice", "super.users: 'alice' is not of the form type:name"),
        ("early.start.listeners", "CONTROLLER,OTHER", "early.start.listeners: OTHER is neither among the listeners"),
    ],
)
def test_what_is_wrong_is_refused_with_a_sentence_that_names_it(name: str, value: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_static(BASE | {name: value})
    assert sentence in refusal.value.sentence
    assert refusal.value.name == name


@pytest.mark.parametrize("name", ["node.id", "process.roles", "controller.listener.names"])
def test_what_a_node_cannot_do_without_is_asked_for(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        parse_static({key: value for key, value in BASE.items() if key != name})


def test_a_topic_value_beats_a_cluster_value_beats_the_file() -> None:
    static = node(log_retention_ms="5")
    cluster = config(BROKER_RESOURCE, "", "log.retention.ms", "6")
    own = config(TOPIC_RESOURCE, "foo", "retention.ms", "7")
    assert topic_value(image_of(), static, "foo", "retention.ms") == 5
    assert topic_value(image_of(cluster), static, "foo", "retention.ms") == 6
    assert topic_value(image_of(cluster, own), static, "foo", "retention.ms") == 7


@pytest.mark.parametrize("resource", [None, BROKER_RESOURCE, TOPIC_RESOURCE])
def test_the_values_of_a_topic_resolved_together_are_those_resolved_one_by_one(resource: int | None) -> None:
    static = node(log_retention_hours="2", log_segment_bytes="2000000")
    records = [config(TOPIC_RESOURCE, "foo", "segment.ms", "77"), config(TOPIC_RESOURCE, "bar", "segment.ms", "78")]
    if resource == BROKER_RESOURCE:
        records += [config(BROKER_RESOURCE, "", "log.retention.ms", "6")]
        records += [config(BROKER_RESOURCE, str(static.node_id), "log.segment.bytes", "3000000")]
    elif resource == TOPIC_RESOURCE:
        records += [config(TOPIC_RESOURCE, "foo", "retention.ms", "7"), config(TOPIC_RESOURCE, "foo", "of.kafka", "1")]
    image = image_of(*records)
    for topic in ("foo", "bar", "none"):
        together = topic_values(image, static, topic)
        assert together == {name: topic_value(image, static, topic, name) for name in TOPIC_CONFIGS}
        together.clear()  # it is the caller's


def test_minutes_and_hours_become_milliseconds_and_the_finer_unit_wins() -> None:
    assert topic_value(image_of(), node(log_retention_hours="2"), "foo", "retention.ms") == 7_200_000
    both = node(log_retention_hours="2", log_retention_minutes="3")
    assert topic_value(image_of(), both, "foo", "retention.ms") == 180_000
    assert topic_value(image_of(), node(log_retention_hours="-1"), "foo", "retention.ms") == -1


def test_every_topic_configuration_has_a_default_of_its_type() -> None:
    image, static = image_of(), node()
    types = {
        ConfigType.BOOLEAN: bool,
        ConfigType.INT: int,
        ConfigType.LONG: int,
        ConfigType.DOUBLE: float,
        ConfigType.STRING: str,
        ConfigType.LIST: tuple,
    }
    for name, definition in TOPIC_CONFIGS.items():
        value = topic_value(image, static, "foo", name)
        assert value is None if definition.default is None else isinstance(value, types[definition.type]), name


def test_describe_shows_sources_and_synonyms() -> None:
    image = image_of(config(TOPIC_RESOURCE, "foo", "retention.ms", "7"))
    static = node(log_retention_hours="2")
    (entry,) = [e for e in describe_topic(image, static, "foo") if e.name == "retention.ms"]
    assert (entry.value, entry.source) == ("7", ConfigSource.DYNAMIC_TOPIC)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("retention.ms", "7", ConfigSource.DYNAMIC_TOPIC),
    ]


def test_synonyms_of_a_topic_begin_with_the_finest_unit_as_on_kafka() -> None:
    def received(static: StaticConfig) -> tuple[str | None, ConfigSource, list[tuple[str, str | None, ConfigSource]]]:
        (entry,) = [e for e in describe_topic(image_of(), static, "foo") if e.name == "retention.ms"]
        return entry.value, entry.source, [(s.name, s.value, s.source) for s in entry.synonyms]

    assert received(node(log_retention_hours="2")) == ("7200000", ConfigSource.DEFAULT, [])
    assert received(node(log_retention_hours="2", log_retention_ms="5")) == (
        "5",
        ConfigSource.STATIC_BROKER,
        [
            ("log.retention.ms", "5", ConfigSource.STATIC_BROKER),
            ("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
            ("log.retention.hours", "168", ConfigSource.DEFAULT),
        ],
    )


def test_limits_of_a_listener_are_shown_and_what_kafka_stored_under_other_names_is_not() -> None:
    image, static = Image(), parse_static({**BASE, "listener.name.plaintext.max.connections": "5"})
    limit, secret = "listener.name.plaintext.max.connections", "listener.name.plaintext.ssl.keystore.password"
    assert listener_limit(image, static, "PLAINTEXT", "max.connections") == 5
    assert listener_limit(image, static, "PLAINTEXT", "max.connection.creation.rate") == 2**31 - 1
    for broker, value in (("", "6"), ("1", "7")):
        image.set_config(BROKER_RESOURCE, broker, limit, value)
        image.set_config(BROKER_RESOURCE, broker, secret, "hunter2")
        image.set_config(BROKER_RESOURCE, broker, "a.plug-in.of.kafka", "hunter2")
        assert listener_limit(image, static, "PLAINTEXT", "max.connections") == int(value)
    for broker, value in (("", "6"), ("1", "7")):
        shown = {entry.name: entry for entry in describe(image, static, BROKER_RESOURCE, broker)}
        assert (shown[limit].value, shown[limit].read_only) == (value, False)
        assert shown[secret].sensitive and shown[secret].value is None
        assert "hunter2" not in str(list(shown.values()))


def test_describe_of_a_broker_says_what_can_change() -> None:
    entries = {entry.name: entry for entry in describe(image_of(), node(), BROKER_RESOURCE, "1")}
    assert entries["node.id"].read_only and entries["node.id"].source == ConfigSource.STATIC_BROKER
    assert not entries["log.retention.ms"].read_only
    image = image_of(config(BROKER_RESOURCE, "", "min.insync.replicas", "2"))
    assert [(e.name, e.value) for e in describe_broker(image, node(), "")] == [("min.insync.replicas", "2")]
    assert server_value(image, node(), "min.insync.replicas") == 2


def test_super_users_have_no_default_among_their_synonyms() -> None:
    static = node(**{"super.users": "User:admin"})
    (entry,) = [entry for entry in describe(image_of(), static, BROKER_RESOURCE, "1") if entry.name == "super.users"]
    assert entry.source == ConfigSource.STATIC_BROKER
    assert [(synonym.value, synonym.source) for synonym in entry.synonyms] == [(None, ConfigSource.STATIC_BROKER)]


@pytest.mark.parametrize("broker", ["", "1"])
def test_a_throttle_is_shown_as_on_kafka_as_if_it_could_not_change(broker: str) -> None:
    image = image_of(
        config(BROKER_RESOURCE, broker, "leader.replication.throttled.rate", "1000"),
        config(BROKER_RESOURCE, broker, "num.io.threads", "9"),
    )
    read_only = {entry.name: entry.read_only for entry in describe_broker(image, node(), broker)}
    assert (read_only["leader.replication.throttled.rate"], read_only["num.io.threads"]) == (True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("retention", "1"), ("retention.ms", "-2"), ("cleanup.policy", "compress"), ("segment.bytes", "1024")],
)
def test_topic_configurations_are_checked(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        validate_topic_configs({name: value})


def test_min_isr_is_capped_by_each_partitions_own_assignment() -> None:
    image = image_of(config(TOPIC_RESOURCE, "foo", "min.insync.replicas", "3"))
    apply(image, PartitionRecord(topic_id=FOO, partition_id=0, replicas=[1, 2], isr=[1], leader=1), 2, 1)
    apply(image, PartitionRecord(topic_id=FOO, partition_id=1, replicas=[1, 2, 3, 4], isr=[1], leader=1), 3, 1)
    assert [min_isr_of(image, node(), FOO, image.partitions[FOO][number]) for number in (0, 1)] == [2, 3]


def test_min_isr_ignores_a_value_stored_for_an_ordinary_broker() -> None:
    partition = PartitionRecord(topic_id=FOO, partition_id=0, replicas=[1, 2, 3], isr=[1], leader=1)
    image = image_of(config(BROKER_RESOURCE, "2", "min.insync.replicas", "3"))
    apply(image, partition, 2, 1)
    assert min_isr_of(image, node(), FOO, image.partitions[FOO][0]) == 1
    apply(image, config(BROKER_RESOURCE, "", "min.insync.replicas", "2"), 3, 1)
    assert min_isr_of(image, node(), FOO, image.partitions[FOO][0]) == 2
