"""DescribeConfigs: sources, synonyms and keys on an image that consists of records, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.described import context, image_with
from apis.guarded import ADMIN, C_DENIED, G_DENIED, T_DENIED, TOPIC, Guarded

from heirlog.apis import describe_configs
from heirlog.log_levels import LOGGERS
from heirlog.metadata.acls import AclOperation
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE as BROKER_LOGGER
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeConfigsRequest
from heirlog.protocol.records import ConfigRecord

EXAMPLE = (
    DescribeConfigsRequest(
        resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="")]
    ),
    None,
)


def ask_config(port: Any, kind: int, name: str, keys: list[str] | None = None, synonyms: bool = True) -> Any:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resource = Resource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    return describe_configs.handle(port, request, context(4)).results[0]


def ask_config_of(port: Any, *keys: list[str] | None) -> Any:
    """Topic a, named once for each list of keys."""
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [Resource(resource_type=2, resource_name="a", configuration_keys=each) for each in keys]
    (result,) = describe_configs.handle(
        port, DescribeConfigsRequest(resources=resources, include_synonyms=True), context(4)
    ).results
    return result


def test_a_topics_configuration_names_its_sources(port: Any) -> None:
    port.image = image_with(
        ConfigRecord(resource_type=2, resource_name="a", name="min.insync.replicas", value="2"),
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="3"),
    )
    (entry,) = ask_config(port, 2, "a", ["min.insync.replicas"]).configs
    assert (entry.value, entry.config_source) == ("2", 1)
    assert [(s.value, s.source) for s in entry.synonyms] == [("2", 1), ("3", 3), ("1", 5)]
    (other,) = ask_config(port, 2, "b", ["min.insync.replicas"], synonyms=False).configs
    assert (other.value, other.config_source, other.synonyms) == ("3", 3, [])


def test_a_synonym_is_told_in_its_own_unit_and_the_value_in_the_topics(port: Any) -> None:
    (entry,) = ask_config(port, 2, "a", ["retention.ms"]).configs
    assert (entry.value, entry.config_source, entry.synonyms) == ("604800000", 5, [])
    port.image = image_with(ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="60000"))
    (entry,) = ask_config(port, 2, "a", ["retention.ms"]).configs
    assert (entry.value, entry.config_source) == ("60000", 3)
    assert [(s.name, s.value) for s in entry.synonyms] == [
        ("log.retention.ms", "60000"),
        ("log.retention.hours", "168"),
    ]


def test_documentation_is_told_where_it_is_asked_for(port: Any) -> None:
    for kind, name in ((2, "a"), (4, "1"), (32, "g")):
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        for wanted in (True, False):
            request = DescribeConfigsRequest(resources=[resource], include_documentation=wanted)
            received = describe_configs.handle(port, request, context(4)).results[0].configs
            assert received and all(bool(entry.documentation) is wanted for entry in received)


def test_no_keys_ask_for_every_configuration_and_internal_ones_are_never_told(port: Any) -> None:
    for kind, name in ((2, "a"), (4, "1")):
        everything = [entry.name for entry in ask_config(port, kind, name).configs]
        assert [entry.name for entry in ask_config(port, kind, name, []).configs] == everything
        assert "internal.segment.bytes" not in everything


@pytest.mark.parametrize(
    ("asked", "described"),
    [
        ((["retention.ms"], ["flush.ms"]), {"retention.ms", "flush.ms"}),
        ((["retention.ms"], ["flush.ms", "retention.ms"], ["segment.ms"]), {"retention.ms", "flush.ms", "segment.ms"}),
    ],
)
def test_a_resource_that_is_named_twice_has_all_keys_that_were_asked_for(
    port: Any, asked: tuple[list[str], ...], described: set[str]
) -> None:
    assert {entry.name for entry in ask_config_of(port, *asked).configs} == described


@pytest.mark.parametrize("everything", [None, []])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_resource_that_is_named_twice_has_all_where_one_asks_for_all(
    port: Any, everything: list[str] | None, is_first: bool
) -> None:
    asked = (everything, ["flush.ms"]) if is_first else (["flush.ms"], everything)
    assert ask_config_of(port, *asked, ["retention.ms"]).configs == ask_config(port, 2, "a").configs


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (4, "2", ErrorCode.INVALID_REQUEST),
        (16, "metrics", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_configurations_that_cannot_be_described_say_why(port: Any, kind: int, name: str, code: ErrorCode) -> None:
    result = ask_config(port, kind, name)
    assert result.error_code == code
    assert result.error_message


def test_this_brokers_own_configuration_is_described(port: Any) -> None:
    values = {entry.name: entry.value for entry in ask_config(port, 4, "1").configs}
    assert values["listeners"] == "PLAINTEXT://localhost:9092"
    assert values["num.partitions"] == "1"
    assert values["broker.id"] == values["node.id"] == "1"


def test_the_loggers_of_the_node_are_a_resource_of_their_own(port: Any) -> None:
    port.log_levels.set("heirlog.broker", "DEBUG")
    levels = {entry.name: entry.value for entry in ask_config(port, BROKER_LOGGER, "1").configs}
    assert set(levels) == set(LOGGERS) and levels["heirlog.broker"] == "DEBUG"
    for name in ("", "2", "x"):
        assert ask_config(port, BROKER_LOGGER, name).error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_kind_of_resource_refuses_the_whole_request(port: Any) -> None:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = [Resource(resource_type=kind, resource_name="a") for kind in (2, 99)]
    results = describe_configs.handle(port, DescribeConfigsRequest(resources=asked), context(4)).results
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", range(1, 5))
def test_types_and_documentation_come_with_version_3(node: Guarded, version: int) -> None:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = Resource(resource_type=2, resource_name="t", configuration_keys=["retention.ms"])
    request = DescribeConfigsRequest(resources=[asked], include_documentation=version >= 3)
    (entry,) = node.ask(request, version, ADMIN).results[0].configs
    assert (entry.value, entry.config_source) == ("604800000", 5)
    assert (bool(entry.documentation), bool(entry.config_type)) == (version >= 3, version >= 3)


def test_configurations_are_asked_for_by_the_kind_of_their_resource(node: Guarded) -> None:
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = [
        Resource(resource_type=kind, resource_name=name) for kind, name in ((2, "t"), (4, ""), (8, "1"), (32, "g"))
    ]
    request = DescribeConfigsRequest(resources=asked)
    codes = [result.error_code for result in node.ask(request).results]
    assert codes == [T_DENIED, C_DENIED, C_DENIED, G_DENIED]
    node.allow(AclOperation.ALTER_CONFIGS, TOPIC, "t")
    codes = {result.resource_type: result.error_code for result in node.ask(request).results}
    assert (codes[2], codes[4]) == (0, C_DENIED)
