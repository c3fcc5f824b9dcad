"""ListConfigResources: kinds by version, brokers that can be reached, and clients without permission."""

from __future__ import annotations

from typing import Any

from apis.described import context, image_with
from apis.guarded import C_DENIED, CLUSTER, Guarded

from heirlog.apis import list_config_resources
from heirlog.metadata.acls import AclOperation
from heirlog.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from heirlog.metadata.state import BROKER_LOGGER_RESOURCE as BROKER_LOGGER
from heirlog.metadata.state import CLIENT_METRICS_RESOURCE as CLIENT_METRICS
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ListConfigResourcesRequest
from heirlog.protocol.records import ConfigRecord


def listed(port: Any, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    answer = list_config_resources.handle(
        port, ListConfigResourcesRequest(resource_types=list(kinds)), context(version)
    )
    assert answer.error_code == ErrorCode.NONE
    return [(found.resource_type, found.resource_name) for found in answer.config_resources]


def test_topics_live_brokers_their_loggers_and_groups_with_configurations_are_listed(port: Any) -> None:
    port.image = image_with(
        ConfigRecord(resource_type=GROUP_RESOURCE, resource_name="g", name="consumer.session.timeout.ms", value="50000")
    )
    topics = [(TOPIC_RESOURCE, "a"), (TOPIC_RESOURCE, "b")]
    brokers = [(BROKER_RESOURCE, "1"), (BROKER_RESOURCE, "2")]
    loggers = [(BROKER_LOGGER, "1"), (BROKER_LOGGER, "2")]
    assert listed(port) == [*topics, *brokers, *loggers, (GROUP_RESOURCE, "g")], "broker 3 is fenced"
    assert listed(port, GROUP_RESOURCE, TOPIC_RESOURCE, TOPIC_RESOURCE) == [(GROUP_RESOURCE, "g"), *topics]
    assert listed(port, CLIENT_METRICS) == []


def test_version_0_asks_for_client_metrics_only(port: Any) -> None:
    assert listed(port, version=0) == []


def test_a_kind_that_is_unknown_is_refused(port: Any) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC_RESOURCE, 99])
    answer = list_config_resources.handle(port, request, context(1))
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    refused = node.ask(ListConfigResourcesRequest())
    assert (refused.error_code, refused.config_resources) == (C_DENIED, [])
    node.allow(AclOperation.DESCRIBE_CONFIGS, CLUSTER)
    names = {found.resource_name for found in node.ask(ListConfigResourcesRequest()).config_resources}
    assert {"t", "hidden", "1"} <= names
