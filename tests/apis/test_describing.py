"""Metadata, DescribeTopicPartitions, DescribeCluster and DescribeConfigs, on an image made of records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heirlog.apis import (
    api_versions,
    describe_cluster,
    describe_configs,
    describe_topic_partitions,
    find_coordinator,
    metadata,
)
from heirlog.apis.common.api import Role
from heirlog.context import Context
from heirlog.metadata.apply import apply_all
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.image import Image
from heirlog.node.auto_topic_creation import missing_topic
from heirlog.node.node import Node
from heirlog.node.router import ROUTES, ListenerRoutes
from heirlog.node.wire import api_keys
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
)
from heirlog.protocol.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from heirlog.protocol.types import Endpoint

LISTENER = "PLAINTEXT"
A, B = b"a" * 16, b"b" * 16
STATIC = parse_static(
    {
        "node.id": "1",
        "process.roles": "broker",
        "listeners": "PLAINTEXT://localhost:9092",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "max.request.partition.size.limit": "10",
        "log.dirs": "/data",
    }
)


def broker(number: int, fenced: bool = False) -> RegisterBrokerRecord:
    end_point = RegisterBrokerRecord.BrokerEndpoint(name=LISTENER, host="h", port=9000 + number, security_protocol=0)
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=bytes([number]) * 16,
        broker_epoch=number,
        end_points=[end_point],
        fenced=fenced,
    )


def partition(topic_id: bytes, number: int, **more: Any) -> PartitionRecord:
    values = {"replicas": [1, 2, 3], "isr": [1, 2], "leader": 1, "leader_epoch": 4, "partition_epoch": 9}
    return PartitionRecord(topic_id=topic_id, partition_id=number, **(values | more))


def image_with(*more: Any) -> Image:
    image = Image()
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=27),
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        broker(1),
        broker(2),
        broker(3, fenced=True),
        TopicRecord(name="a", topic_id=A),
        partition(A, 0),
        partition(A, 1, leader=-1, isr=[], eligible_leader_replicas=[2, 3], last_known_elr=[3]),
        TopicRecord(name="b", topic_id=B),
        partition(B, 0),
        *more,
    ]
    apply_all(image, records, 0, 1)
    return image


@pytest.fixture
def node() -> Any:
    """The part of a node that these handlers ask."""
    address = Endpoint("localhost", 9092)
    listener = ListenerRoutes(LISTENER, address, address, Role.BROKER)
    fake = SimpleNamespace(image=image_with(), config=STATIC, cluster_id="cluster", created=[])
    fake.api_keys = lambda name: api_keys(listener)
    fake.sorted_brokers = lambda: Node.sorted_brokers(fake)  # type: ignore[arg-type]
    fake.any_live_broker = lambda: Node.any_live_broker(fake)  # type: ignore[arg-type]
    fake.create_missing_topics = lambda names, context=None: fake.created.extend(names)
    return fake


def context(version: int) -> Context:
    return Context(version, "client", "here", LISTENER, object())


def describe(node: Any, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    Request = DescribeTopicPartitionsRequest
    return describe_topic_partitions.handle(
        node,
        Request(
            topics=[Request.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
        context(0),
    )


def shown(response: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [found.partition_index for found in topic.partitions]) for topic in response.topics]


def cursor_of(response: Any) -> tuple[str, int] | None:
    at = response.next_cursor
    return None if at is None else (at.topic_name, at.partition_index)


@pytest.mark.parametrize(
    ("limit", "cursor", "expected", "following"),
    [
        (2000, None, [("a", [0, 1]), ("b", [0])], None),
        (1, None, [("a", [0])], ("a", 1)),
        (2, None, [("a", [0, 1])], ("b", 0)),
        (2000, ("a", 1), [("a", [1]), ("b", [0])], None),
        (3, None, [("a", [0, 1]), ("b", [0])], None),
        (0, None, [("a", [0])], ("a", 1)),
        (2000, ("aa", 5), [("b", [0])], None),
    ],
)
def test_pages_follow_names_and_partitions(
    node: Any, limit: int, cursor: tuple[str, int] | None, expected: Any, following: Any
) -> None:
    response = describe(node, [], limit, cursor)
    assert shown(response) == expected
    assert cursor_of(response) == following


def test_topics_before_the_cursor_are_passed_over(node: Any) -> None:
    assert shown(describe(node, ["a", "b"], cursor=("b", 0))) == [("b", [0])]


@pytest.mark.parametrize("cursor", [("a", -1), ("nowhere", 0)])
def test_a_cursor_that_cannot_be_is_refused(node: Any, cursor: tuple[str, int]) -> None:
    response = describe(node, ["a", "b"], cursor=cursor)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_unknown_and_malformed_names_stand_in_order_with_their_errors(node: Any) -> None:
    response = describe(node, ["nope", "bad name!"])
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_both_elr_lists_are_always_there(node: Any) -> None:
    first, second = describe(node, ["a"]).topics[0].partitions
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])
    assert (second.eligible_leader_replicas, second.last_known_elr) == ([2, 3], [3])
    assert second.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert first.offline_replicas == [3]


def test_the_servers_limit_bounds_a_page(node: Any) -> None:
    node.image = image_with(*(partition(B, number) for number in range(1, 30)))
    assert sum(len(topic.partitions) for topic in describe(node, []).topics) == 10


def ask_metadata(node: Any, version: int, names: list[str | None] | None, **more: Any) -> Any:
    Topic = MetadataRequest.MetadataRequestTopic
    topics = None if names is None else [Topic(name=name) for name in names]
    return metadata.handle(node, MetadataRequest(topics=topics, **more), context(version))


def test_metadata_lists_live_brokers_and_all_topics_for_null(node: Any) -> None:
    response = ask_metadata(node, 12, None)
    assert [(found.node_id, found.port) for found in response.brokers] == [(1, 9001), (2, 9002)]
    assert response.controller_id == 1
    assert response.cluster_id == "cluster"
    assert [topic.name for topic in response.topics] == ["a", "b"]
    led, leaderless = response.topics[0].partitions
    assert (led.leader_id, led.leader_epoch, led.error_code) == (1, 4, ErrorCode.NONE)
    assert (leaderless.leader_id, leaderless.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_a_broker_that_is_fenced_like_all_others_shows_itself(node: Any) -> None:
    """It has come back first: clients keep an answer without brokers for minutes."""
    changes = [BrokerRegistrationChangeRecord(broker_id=number, broker_epoch=number, fenced=1) for number in (1, 2)]
    node.image = image_with(*changes)
    response = ask_metadata(node, 12, None)
    assert [(found.node_id, found.port) for found in response.brokers] == [(1, 9001)]
    assert response.controller_id == 1
    described = describe_cluster.handle(node, DescribeClusterRequest(), context(2))
    assert [(found.broker_id, found.is_fenced) for found in described.brokers] == [(1, True)]
    assert described.controller_id == 1


def test_an_empty_list_means_all_topics_in_version_0_only(node: Any) -> None:
    assert len(ask_metadata(node, 0, []).topics) == 2
    assert ask_metadata(node, 1, []).topics == []


def test_a_missing_topic_is_created_where_client_and_broker_allow_it(node: Any) -> None:
    response = ask_metadata(node, 12, ["new", "bad name!"], allow_auto_topic_creation=True)
    assert [topic.error_code for topic in response.topics] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert node.created == ["new"]
    ask_metadata(node, 12, ["other"], allow_auto_topic_creation=False)
    assert node.created == ["new"]


def test_topics_are_found_by_id(node: Any) -> None:
    Topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[Topic(name=None, topic_id=B), Topic(name=None, topic_id=b"x" * 16)])
    found, missing = metadata.handle(node, request, context(12)).topics
    assert found.name == "b"
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_ids_count_and_names_beside_them_do_not(node: Any) -> None:
    Topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[Topic(name="a", topic_id=B), Topic(name="a"), Topic(name=None, topic_id=B), Topic(name=None)]
    )
    assert [found.name for found in metadata.handle(node, request, context(12)).topics] == ["b"]


def test_a_topic_is_described_once_however_often_it_was_asked_for(node: Any) -> None:
    assert [found.name for found in ask_metadata(node, 12, ["b", "x", "b", "x"]).topics] == ["b", "x"]


def test_operations_are_told_of_a_missing_topic_too(node: Any) -> None:
    for asked in ("nope", "bad name!"):
        (known, missing) = ask_metadata(node, 9, ["a", asked], include_topic_authorized_operations=True).topics
        assert missing.topic_authorized_operations == known.topic_authorized_operations > 0


@pytest.mark.parametrize("version", [10, 11])
def test_ids_before_their_version_are_refused_with_nothing_else_in_the_answer(node: Any, version: int) -> None:
    response = ask_metadata(node, version, ["a", None])
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 2
    assert (response.brokers, response.controller_id) == ([], -1)


def test_a_leader_that_was_fenced_is_no_place_to_send_a_client_to(node: Any) -> None:
    node.image = image_with(partition(B, 1, leader=3, isr=[3]))
    assert ask_metadata(node, 12, ["b"]).topics[0].partitions[1].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_describe_cluster_shows_fenced_brokers_on_request_only(node: Any) -> None:
    def ids(**more: Any) -> list[int]:
        return [b.broker_id for b in describe_cluster.handle(node, DescribeClusterRequest(**more), context(2)).brokers]

    assert ids() == [1, 2]
    assert ids(include_fenced_brokers=True) == [1, 2, 3]
    refused = describe_cluster.handle(node, DescribeClusterRequest(endpoint_type=2), context(2))
    assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    unknown = describe_cluster.handle(node, DescribeClusterRequest(endpoint_type=3), context(1))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    without_types = describe_cluster.handle(node, DescribeClusterRequest(endpoint_type=2), context(0))
    assert without_types.error_code == ErrorCode.INVALID_REQUEST


def ask_config(node: Any, kind: int, name: str, keys: list[str] | None = None, synonyms: bool = True) -> Any:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resource = Resource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    return describe_configs.handle(node, request, context(4)).results[0]


def ask_config_of(node: Any, *keys: list[str] | None) -> Any:
    """Topic a, named once for each list of keys."""
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [Resource(resource_type=2, resource_name="a", configuration_keys=each) for each in keys]
    (result,) = describe_configs.handle(
        node, DescribeConfigsRequest(resources=resources, include_synonyms=True), context(4)
    ).results
    return result


def test_a_topics_configuration_names_its_sources(node: Any) -> None:
    node.image = image_with(
        ConfigRecord(resource_type=2, resource_name="a", name="min.insync.replicas", value="2"),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="3"),
    )
    (entry,) = ask_config(node, 2, "a", ["min.insync.replicas"]).configs
    assert (entry.value, entry.config_source) == ("2", 1)
    assert [(s.value, s.source) for s in entry.synonyms] == [("2", 1), ("3", 3), ("1", 5)]
    (other,) = ask_config(node, 2, "b", ["min.insync.replicas"], synonyms=False).configs
    assert (other.value, other.config_source, other.synonyms) == ("3", 3, [])


def test_a_synonym_is_told_in_its_own_unit_and_the_value_in_the_topics(node: Any) -> None:
    (entry,) = ask_config(node, 2, "a", ["retention.ms"]).configs
    assert (entry.value, entry.config_source, entry.synonyms) == ("604800000", 5, [])
    node.image = image_with(ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="60000"))
    (entry,) = ask_config(node, 2, "a", ["retention.ms"]).configs
    assert (entry.value, entry.config_source) == ("60000", 3)
    assert [(s.name, s.value) for s in entry.synonyms] == [
        ("log.retention.ms", "60000"),
        ("log.retention.hours", "168"),
    ]


def test_documentation_is_told_where_it_is_asked_for(node: Any) -> None:
    for kind, name in ((2, "a"), (4, "1"), (32, "g")):
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        for wanted in (True, False):
            request = DescribeConfigsRequest(resources=[resource], include_documentation=wanted)
            received = describe_configs.handle(node, request, context(4)).results[0].configs
            assert received and all(bool(entry.documentation) is wanted for entry in received)


def test_no_keys_ask_for_every_configuration_and_internal_ones_are_never_told(node: Any) -> None:
    for kind, name in ((2, "a"), (4, "1")):
        everything = [entry.name for entry in ask_config(node, kind, name).configs]
        assert [entry.name for entry in ask_config(node, kind, name, []).configs] == everything
        assert "internal.segment.bytes" not in everything


@pytest.mark.parametrize(
    ("asked", "described"),
    [
        ((["retention.ms"], ["flush.ms"]), {"retention.ms", "flush.ms"}),
        ((["retention.ms"], ["flush.ms", "retention.ms"], ["segment.ms"]), {"retention.ms", "flush.ms", "segment.ms"}),
    ],
)
def test_a_resource_that_is_named_twice_has_all_keys_that_were_asked_for(
    node: Any, asked: tuple[list[str], ...], described: set[str]
) -> None:
    assert {entry.name for entry in ask_config_of(node, *asked).configs} == described


@pytest.mark.parametrize("everything", [None, []])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_resource_that_is_named_twice_has_all_where_one_asks_for_all(
    node: Any, everything: list[str] | None, is_first: bool
) -> None:
    asked = (everything, ["flush.ms"]) if is_first else (["flush.ms"], everything)
    assert ask_config_of(node, *asked, ["retention.ms"]).configs == ask_config(node, 2, "a").configs


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (4, "2", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_configurations_that_cannot_be_described_say_why(node: Any, kind: int, name: str, code: ErrorCode) -> None:
    result = ask_config(node, kind, name)
    assert result.error_code == code
    assert result.error_message


def test_this_brokers_own_configuration_is_described(node: Any) -> None:
    values = {entry.name: entry.value for entry in ask_config(node, 4, "1").configs}
    assert values["listeners"] == "PLAINTEXT://localhost:9092"
    assert values["num.partitions"] == "1"
    assert values["broker.id"] == values["node.id"] == "1"


def test_api_versions_shows_the_table_and_the_features(node: Any) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    newest = api_versions.handle(node, request, context(4))
    shown = {key for key, route in ROUTES[Role.BROKER].items() if route.advertised is not None}
    assert {key.api_key for key in newest.api_keys} == shown < set(ROUTES[Role.BROKER])
    produce = next(key for key in newest.api_keys if key.api_key == 0)
    assert (produce.min_version, produce.max_version) == (0, 13), "librdkafka looks at the minimum"
    finalized = {feature.name for feature in newest.finalized_features}
    assert finalized == {"metadata.version", "eligible.leader.replicas.version", "kraft.version"}
    older = api_versions.handle(node, request, context(3))
    assert all(feature.min_version > 0 for feature in older.supported_features), "KAFKA-17011"


@pytest.mark.parametrize("name", ["", "-x", "a b", "x." * 3, "é", "aéb", "²"])
def test_a_client_that_misnames_itself_is_refused(node: Any, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1.0")
    assert api_versions.handle(node, request, context(3)).error_code == ErrorCode.INVALID_REQUEST
    assert api_versions.handle(node, request, context(2)).error_code == ErrorCode.NONE


def offsets_topic(**more: Any) -> list[Any]:
    return [TopicRecord(name="__consumer_offsets", topic_id=b"o" * 16), partition(b"o" * 16, 0, **more)]


def ask_coordinator(node: Any) -> Any:
    # the part of a broker that the handler asks: "g" and "h" are two groups of one partition
    exists = "__consumer_offsets" in node.image.topic_ids
    node.broker = SimpleNamespace(groups=SimpleNamespace(partition_of=lambda group: 0 if exists else None))
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])
    return find_coordinator.handle(node, request, context(4)).coordinators


def test_the_first_question_for_a_coordinator_creates_the_topic(node: Any) -> None:
    found = ask_coordinator(node)
    assert [(c.key, c.error_code) for c in found] == [
        ("g", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("h", ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ]
    assert set(node.created) == {"__consumer_offsets"}


def test_the_coordinator_is_the_leader_of_the_groups_partition(node: Any) -> None:
    node.image = image_with(*offsets_topic(leader=2))
    assert [(c.key, c.node_id, c.host, c.port) for c in ask_coordinator(node)] == [
        ("g", 2, "h", 9002),
        ("h", 2, "h", 9002),
    ]
    node.image = image_with(*offsets_topic(leader=3))
    assert {c.error_code for c in ask_coordinator(node)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}, "3 is fenced"


def test_no_coordinator_of_transactions_is_promised(node: Any) -> None:
    transaction = find_coordinator.handle(node, FindCoordinatorRequest(key="t", key_type=1), context(3))
    assert transaction.error_code == ErrorCode.INVALID_REQUEST
    assert "transactions are not supported yet" in transaction.error_message


def test_the_topic_of_the_offsets_has_a_configuration_of_its_own() -> None:
    offsets = missing_topic(STATIC, "__consumer_offsets")
    assert (offsets.num_partitions, offsets.replication_factor) == (50, 3)
    assert {config.name: config.value for config in offsets.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    recoveries = missing_topic(STATIC, "__heirlog_recoveries")
    assert (recoveries.num_partitions, recoveries.replication_factor, recoveries.configs) == (1, 3, offsets.configs)
    other = missing_topic(STATIC, "other")
    assert (other.num_partitions, other.replication_factor, other.configs) == (-1, -1, [])
