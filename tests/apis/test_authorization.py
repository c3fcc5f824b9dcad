"""Permissions of all APIs: a client gets what its ACLs allow, and what the descriptors say is what it needs.

An API's own test file has its `EXAMPLE`: a request, and its version, in which a client without permission is refused
something. Without one the empty request in the newest version is that example. `REFUSES_NOTHING` says why there is
none: such an API only leaves things out.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from apis.guarded import ADMIN, ALICE, BROKER, CLUSTER, CONTROLLER, GROUP, HOST, TOPIC, Guarded, denials, produce, shown

from heirlog.apis.common.api import Role
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, ResourceType
from heirlog.node.router import ROUTES
from heirlog.protocol.api import APIS, ApiKey, request_class
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import CreateTopicsRequest, DescribeClusterRequest, MetadataRequest

NAMES = {TOPIC: "t", GROUP: "g", CLUSTER: CLUSTER_NAME, ResourceType.TRANSACTIONAL_ID: "x"}
LISTENERS = {Role.BROKER: BROKER, Role.CONTROLLER: CONTROLLER}
OF_TOKENS = (
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
)
"""Not on these listeners, which have no login. Their own files ask for the rest: who may renew and expire a token is a
matter of the token."""
GUARDED = [
    (role, key)
    for role, routes in ROUTES.items()
    for key, route in routes.items()
    if (route.served.needs or route.served.guard is not None) and key not in OF_TOKENS
]


def file_of(key: int) -> Any:
    """The test file of the API."""
    return import_module(f"apis.test_{APIS[ApiKey(key)].module}")


def example(role: Role, key: int) -> tuple[Any, int | None]:
    tests = file_of(key)
    found: tuple[Any, int | None] = getattr(tests, "EXAMPLE", (request_class(key)(), None))
    if role is Role.CONTROLLER:
        found = getattr(tests, "CONTROLLER_EXAMPLE", found)
    return found


def refuses_nothing(role: Role, key: int) -> bool:
    return role is Role.BROKER and hasattr(file_of(key), "REFUSES_NOTHING")


def test_what_a_broker_forwards_is_asked_for_by_the_controller() -> None:
    for key, route in ROUTES[Role.BROKER].items():
        if route.is_forwarded and key not in OF_TOKENS:
            assert ROUTES[Role.CONTROLLER][key].served.needs


def test_only_what_comes_before_authentication_is_open_to_every_client() -> None:
    """A broker that only forwards asks for nothing: the controller does."""
    open_to_all = {
        key
        for routes in ROUTES.values()
        for key, route in routes.items()
        if not route.is_forwarded and not route.served.needs and route.served.guard is None
    }
    assert open_to_all == {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


@pytest.mark.parametrize(("role", "key"), GUARDED)
def test_nothing_is_served_to_those_who_may_do_nothing(node: Guarded, role: Role, key: int) -> None:
    request, version = example(role, key)
    answer = node.ask(request, version, listener=LISTENERS[role])
    if refuses_nothing(role, key):
        assert not denials(answer)
    else:
        assert denials(answer), answer


@pytest.mark.parametrize(("role", "key"), GUARDED)
def test_each_api_is_served_to_those_who_have_what_its_rule_says(node: Guarded, role: Role, key: int) -> None:
    served = ROUTES[role][key].served
    for operation, kind in [*served.needs, *served.also]:
        node.allow(operation, kind, NAMES[kind])
    request, version = example(role, key)
    answer = node.ask(request, version, listener=LISTENERS[role])
    assert not denials(answer), answer


@pytest.mark.parametrize(
    "key",
    [
        key
        for key, route in ROUTES[Role.BROKER].items()
        if route.is_forwarded and not route.served.needs and key not in OF_TOKENS
    ],
)
def test_what_is_forwarded_is_asked_for_of_the_client_not_of_the_broker(node: Guarded, key: int) -> None:
    request, version = example(Role.BROKER, key)
    assert denials(node.ask(request, version))
    assert not denials(node.ask(request, version, principal=ADMIN))


@pytest.mark.parametrize("principal", [ALICE, ADMIN])
@pytest.mark.parametrize("role", Role)
def test_nobody_gets_tokens_where_there_is_no_login(node: Guarded, role: Role, principal: str) -> None:
    for key in OF_TOKENS:
        if key in ROUTES[role]:
            answer = node.ask(request_class(key)(), principal=principal, listener=LISTENERS[role])
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


# -- who asks ---------------------------------------------------------------------------------------------------------


def test_until_the_acls_are_known_only_super_users_are_served(node: Guarded) -> None:
    described, authorizer = DescribeClusterRequest(endpoint_type=2), node.node.authorizer
    authorizer.is_loaded = False
    wire, connection = node.connect(listener=CONTROLLER)
    connection.received(RequestHeader(60, 2, 1, "guarded"), described)
    assert not wire.answers
    assert node.ask(described, principal=ADMIN, listener=CONTROLLER).error_code == ErrorCode.NONE
    node.wait(lambda: bool(wire.answers))
    assert authorizer.is_loaded, "the next commit shows that this node has everything"
    connection.closed()


def creating(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], validate_only=True)


def test_a_broker_that_may_not_forward_tells_its_clients_nothing_of_permissions() -> None:
    alone = Guarded(super_users="User:admin", allow_everyone_if_no_acl_found="true")
    alone.allow(AclOperation.CREATE, CLUSTER, CLUSTER_NAME)
    answer = alone.ask(creating("t"), principal=ADMIN)
    assert shown(answer) == {"t": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert any(line.event == "forwarding-denied" for line in alone.log)


@pytest.mark.parametrize("by_snapshot", [False, True])
def test_acls_outlive_their_node(by_snapshot: bool) -> None:
    limits = {"metadata_log_max_record_bytes_between_snapshots": "1"} if by_snapshot else {}
    guarded = Guarded(**limits)
    guarded.create_topics("t", "u")
    guarded.allow(AclOperation.DESCRIBE, TOPIC, "t")
    before = dict(guarded.node.image.acls.by_id)
    guarded.world.run_for(2000)
    guarded.cluster.kill("broker-1")
    guarded.cluster.start("broker-1")
    guarded.wait(lambda: guarded.cluster.broker(1).node is not None and bool(guarded.node.image.topic_ids))
    assert shown(guarded.ask(MetadataRequest(topics=None))) == {"t": 0}
    assert guarded.node.image.acls.by_id == before


def test_what_is_denied_is_logged_with_who_asked_for_what(node: Guarded) -> None:
    node.world.run_for(20_000)
    node.log.clear()
    node.ask(produce("hidden"), 12)
    (line,) = [line for line in node.log if line.event == "authorization-denied"]
    assert dict(line.values) | {"suppressed": 0} == {
        "principal": ALICE,
        "host": HOST,
        "operation": "WRITE",
        "resource_type": "TOPIC",
        "resource": "hidden",
        "suppressed": 0,
    }


def test_a_user_that_is_denied_all_the_time_does_not_hide_another_one(node: Guarded) -> None:
    node.world.run_for(20_000)
    node.log.clear()
    for principal, host in ((ALICE, HOST), (ALICE, HOST), ("User:mallory", HOST), (ALICE, "10.0.0.2")):
        node.ask(produce("hidden"), 12, principal=principal, host=host)
    denied = [dict(line.values) for line in node.log if line.event == "authorization-denied"]
    assert [(line["principal"], line["host"]) for line in denied] == [
        (ALICE, HOST),
        ("User:mallory", HOST),
        (ALICE, "10.0.0.2"),
    ]


def test_without_an_authorizer_every_client_may_do_everything() -> None:
    open_node = Guarded(authorizer_class_name="", super_users="")
    open_node.create_topics("t")
    assert shown(open_node.ask(MetadataRequest(topics=None))) == {"t": ErrorCode.NONE}
    assert not denials(open_node.ask(produce("t"), 12))
