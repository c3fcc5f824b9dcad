"""Clients that are known by their certificate: the principal of ACLs, through a broker that forwards as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from heirlog.blocking import Client
from heirlog.client.acls import create_acls
from heirlog.client.errors import AuthenticationFailed
from heirlog.client.security import security_from_properties
from heirlog.metadata.acls import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateTopicsRequest
from heirlog.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1, security="SSL") as running:
        yield running


def connected(cluster: Cluster, user: str, **more: str) -> Client:
    given = {name: text for name, text in (cluster.client_config(user) | more).items() if text}
    return Client(cluster.bootstrap_servers, security=security_from_properties(given), timeout_s=15)


def created(client: Client, name: str) -> int:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer: Any = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    return int(answer.topics[0].error_code)


def test_the_controller_decides_for_the_client_and_not_for_the_broker(cluster: Cluster) -> None:
    """The broker is a super user, and forwards the request of alice as hers."""
    with connected(cluster, "alice") as alice, connected(cluster, "admin") as admin:
        assert created(alice, "a") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        acl = Acl(
            ResourceType.TOPIC,
            "a",
            PatternType.PREFIXED,
            "User:alice",
            "*",
            AclOperation.CREATE,
            AclPermissionType.ALLOW,
        )
        assert admin.run(create_acls([acl])) == [None]
        assert created(alice, "a") == 0
        assert created(alice, "b") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with connected(cluster, "mallory") as mallory:
        assert created(mallory, "a2") == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_name_with_another_in_it_is_another_name(cluster: Cluster) -> None:
    """CN=admin,O=x as one common name: the comma is escaped, so the rule for a common name alone does not match."""
    for name in ("admin,O=x", "admin+OU=y", " admin"):
        with connected(cluster, name) as client:
            assert created(client, "stolen") == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_without_a_certificate_nothing_is_served(cluster: Cluster) -> None:
    with (
        pytest.raises((AuthenticationFailed, ConnectionError)),
        connected(cluster, "admin", **{"ssl.keystore.location": "", "ssl.keystore.type": ""}) as client,
    ):
        client.metadata([], timeout_s=2.0)
