"""ACLs over real sockets, with kio's codec and the admin clients of strangers: made, found, obeyed, removed.

All clients are User:ANONYMOUS. The node's own requests come from 127.0.0.1, which an ACL lets do everything; what is
tried comes from 127.0.0.2, which may do what its ACLs say.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from clients.wire_client import TIMEOUT_S, WireClient
from clients.world import World
from confluent_kafka import admin as kinds

from heirlog.cli.app import run
from heirlog.testing.cluster import Cluster

ANONYMOUS, HERE, THERE = "User:ANONYMOUS", "127.0.0.1", "127.0.0.2"
ANY, TOPIC, GROUP, CLUSTER = 1, 2, 3, 4
LITERAL, PREFIXED = 3, 4
ALL, READ, WRITE, DESCRIBE = 2, 3, 4, 8
DENY, ALLOW = 2, 3
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
    "auto.create.topics.enable": False,
}


def acl(kind: int, name: str, operation: int, host: str = THERE, **more: Any) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": ANONYMOUS,
        "host": host,
        "operation": operation,
        "permission_type": ALLOW,
        **more,
    }


EVERYTHING_HERE = [acl(CLUSTER, "kafka-cluster", ALL, HERE), acl(TOPIC, "*", ALL, HERE), acl(GROUP, "*", ALL, HERE)]
EVERYTHING = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
THERE_ONLY = EVERYTHING | {"host_filter": THERE}


@pytest.fixture(scope="module")
def one() -> Iterator[World]:
    with Cluster(nodes=1, config=CONFIG) as cluster:
        found = World(cluster)
        for result in found.ask("create_acls", 3, creations=EVERYTHING_HERE).results:
            assert result.error_code.value == 0, result
        found.eventually(lambda: len(described(found)) == 3)
        yield found
        for node in cluster.node_ids:
            assert "request-failed" not in cluster.output(node)


@pytest.fixture
def world(one: World) -> Iterator[World]:
    yield one
    one.ask("delete_acls", 3, filters=[THERE_ONLY])
    one.eventually(lambda: not described(one, host_filter=THERE))


def described(world: World, version: int = 3, **more: Any) -> list[tuple[Any, ...]]:
    answer = world.ask("describe_acls", version, **EVERYTHING | more)
    assert answer.error_code.value == 0, answer
    return [
        (on.resource_type, on.resource_name, on.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for on in answer.resources
        for a in on.acls
    ]


def from_there(world: World) -> WireClient:
    """A connection of a client at 127.0.0.2."""
    wire_client = world.broker()
    address = wire_client._socket.getpeername()
    wire_client._socket.close()
    wire_client._socket = socket.create_connection(address, TIMEOUT_S, source_address=(THERE, 0))
    return wire_client


def topics_seen(world: World) -> list[str]:
    with from_there(world) as wire_client:
        return [topic.name for topic in wire_client.ask("metadata", 12, topics=None).topics]


@pytest.mark.parametrize("forwarded", [True, False])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_created_described_and_deleted(world: World, version: int, forwarded: bool) -> None:
    ask = world.ask if forwarded else world.ask_controller
    wanted = [acl(TOPIC, "a", READ), acl(GROUP, "g", ALL, resource_pattern_type=PREFIXED, permission_type=DENY)]
    answer = ask("create_acls", version, creations=[*wanted, wanted[0], acl(TOPIC, "", READ)])
    assert [result.error_code.name for result in answer.results] == ["none", "none", "none", "invalid_request"]
    assert answer.results[3].error_message == "Invalid empty resource name"
    shown = [
        (TOPIC, "a", LITERAL, ANONYMOUS, THERE, READ, ALLOW),
        (GROUP, "g", PREFIXED, ANONYMOUS, THERE, ALL, DENY),
    ]
    world.eventually(lambda: described(world, version, host_filter=THERE) == shown)
    removed = ask("delete_acls", version, filters=[THERE_ONLY | {"operation": READ}, THERE_ONLY])
    assert [result.error_code.name for result in removed.filter_results] == ["none", "none"]
    assert [len(result.matching_acls) for result in removed.filter_results] == [1, 2]
    (found,) = removed.filter_results[0].matching_acls
    assert (found.resource_name, found.principal, found.host, found.operation) == ("a", ANONYMOUS, THERE, READ)
    world.eventually(lambda: not described(world, host_filter=THERE))


@pytest.mark.parametrize(
    ("api", "values"),
    [
        ("create_acls", {"creations": [acl(0, "a", READ)]}),
        ("create_acls", {"creations": [acl(TOPIC, "a", 0)]}),
        ("delete_acls", {"filters": [EVERYTHING | {"permission_type": 0}]}),
        ("describe_acls", EVERYTHING | {"pattern_type_filter": 0}),
    ],
)
def test_a_number_that_nobody_can_mean_closes_the_connection(world: World, api: str, values: dict[str, Any]) -> None:
    with world.broker() as wire_client, pytest.raises(ConnectionError):
        wire_client.ask(api, 3, **values)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"resource_type": ANY}, "unknown_server_error"),
        ({"resource_pattern_type": 2}, "unknown_server_error"),
        ({"operation": ANY}, "unknown_server_error"),
        ({"permission_type": ANY}, "unknown_server_error"),
        ({"resource_type": 99}, "invalid_request"),
        ({"operation": 99}, "invalid_request"),
        ({"principal": "nobody"}, "invalid_request"),
        ({"resource_type": CLUSTER, "resource_name": "mine"}, "invalid_request"),
    ],
)
def test_an_acl_that_says_nothing_is_refused(world: World, change: dict[str, Any], code: str) -> None:
    (result,) = world.ask("create_acls", 3, creations=[acl(TOPIC, "a", READ) | change]).results
    assert result.error_code.name == code


def test_a_client_may_do_what_an_acl_allows_its_address_from_then_on_and_until_it_is_removed(world: World) -> None:
    topic = world.topic(replicas=[1])
    assert topics_seen(world) == []
    world.ask("create_acls", 3, creations=[acl(TOPIC, topic[:2], DESCRIBE, resource_pattern_type=PREFIXED)])
    world.eventually(lambda: topics_seen(world) == [topic])
    with from_there(world) as wire_client:
        refused = wire_client.ask("delete_topics", 6, topics=[{"name": topic, "topic_id": None}], timeout=5000)
        assert refused.responses[0].error_code.name == "topic_authorization_failed"
        described_there = wire_client.ask("describe_acls", 3, **EVERYTHING)
        assert described_there.error_code.name == "cluster_authorization_failed"
    world.ask("create_acls", 3, creations=[acl(TOPIC, topic, DESCRIBE, permission_type=DENY)])
    world.eventually(lambda: topics_seen(world) == [])


def test_confluent_kafka_administers_acls(world: World) -> None:
    admin = kinds.AdminClient({"bootstrap.servers": world.cluster.bootstrap_servers})
    binding = kinds.AclBinding(
        kinds.ResourceType.TOPIC,
        "confluent",
        kinds.ResourcePatternType.PREFIXED,
        "User:alice",
        THERE,
        kinds.AclOperation.WRITE,
        kinds.AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([binding], request_timeout=TIMEOUT_S).values():
        future.result()
    of_topic = kinds.AclBindingFilter(
        kinds.ResourceType.TOPIC,
        "confluent-7",
        kinds.ResourcePatternType.MATCH,
        None,
        THERE,
        kinds.AclOperation.ANY,
        kinds.AclPermissionType.ANY,
    )
    found = world.eventually(lambda: admin.describe_acls(of_topic, request_timeout=TIMEOUT_S).result())
    assert found == [binding]
    (removed,) = [future.result() for future in admin.delete_acls([of_topic], request_timeout=TIMEOUT_S).values()]
    assert removed == [binding]


def test_the_commands_add_list_and_remove(
    world: World, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", world.cluster.bootstrap_servers)

    def heirlog(*arguments: str) -> Any:
        capfd.readouterr()
        code = run([*arguments])
        out, err = capfd.readouterr()
        return (json.loads(out) if code == 0 and "--json" in arguments else out) if code == 0 else (code, err)

    alice = ("--allow-principal", "User:alice", "--allow-host", THERE)
    added = heirlog("acls", "add", *alice, "--producer", "--idempotent", "--topic", "orders", "--json")
    assert [(row["resource_type"], row["operation"]) for row in added] == [
        ("CLUSTER", "IDEMPOTENT_WRITE"),
        ("TOPIC", "CREATE"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "WRITE"),
    ]
    read = ("--operation", "Read", "--operation", "describe-configs", "--topic", "or")
    assert heirlog("acls", "add", *alice, *read, "--resource-pattern-type", "prefixed")
    listed = ("acls", "list", "--topic", "orders", "--principal", "User:alice", "--json")
    world.eventually(lambda: len(heirlog(*listed, "--resource-pattern-type", "match")) == 5)
    assert len(heirlog(*listed)) == 3
    matching = heirlog(*listed, "--resource-pattern-type", "match")
    assert {(row["pattern_type"], row["operation"]) for row in matching} == {
        ("LITERAL", "CREATE"),
        ("LITERAL", "DESCRIBE"),
        ("LITERAL", "WRITE"),
        ("PREFIXED", "READ"),
        ("PREFIXED", "DESCRIBE_CONFIGS"),
    }
    removed = heirlog("acls", "remove", *alice, "--operation", "Write", "--topic", "orders", "--force", "--json")
    assert [row["operation"] for row in removed] == ["WRITE"]
    assert len(heirlog("acls", "remove", "--topic", "orders", "--force", "--json")) == 2
    wrong = heirlog("acls", "add", *alice, "--operation", "Write", "--group", "g")
    sentence = "--operation Write: of a group there are Read, Delete, Describe, DescribeConfigs, AlterConfigs, All"
    assert wrong == (2, f"heirlog: {sentence}\n")
    assert heirlog("acls", "add", "--operation", "Read", "--topic", "t")[0] == 2
    assert heirlog("acls", "add", "--allow-principal", "alice", "--topic", "t")[0] == 2
