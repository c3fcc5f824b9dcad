"""What a client that may do little is told, here and on Apache Kafka 4.2, from the same server.properties and ACLs.

Everybody is User:ANONYMOUS. ACLs allow 127.0.0.1 everything, from where the node itself and the operator come; what is
asked comes from 127.0.0.2, on the broker's and the controller's listener, under one random set of ACLs after another.
Of the answers everything is compared that tells of permissions: which items are refused and how, which are shown at
all, and the authorized operations. Other error codes only count as "served".
"""

from __future__ import annotations

import random
import socket
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jars
from apache_kafka import PATIENCE_S, eventually, started
from suites import nodes

from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from heirlog.protocol.api import request_class
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Struct
from heirlog.testing import Cluster

SEED = 601
SETS = 30
HERE, THERE = "127.0.0.1", "127.0.0.2"
ANONYMOUS = "User:ANONYMOUS"
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
}
DENIALS = (29, 30, 31, 53)
SHOWN = frozenset(
    (
        *(
            "name",
            "topic",
            "group_id",
            "resource_type",
            "resource_name",
            "key",
            "partition_index",
            "partition",
            "index",
        ),
        *("topic_authorized_operations", "cluster_authorized_operations", "authorized_operations"),
    )
)
NOT_COMPARED = frozenset(("brokers", "configs", "replica_nodes", "node_endpoints", "active_producers"))
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID

Acl = tuple[ResourceType, str, PatternType, AclOperation, AclPermissionType]
Request = tuple[bool, Any, int | None]
"""Whether it goes to the controller's listener; the request; its version, None for the newest."""


def make(api_key: int, /, **fields: Any) -> Any:
    """A request; nested structs are dicts, under the field names of our messages."""
    cls = request_class(api_key)
    return _filled(cls(), cls, fields)


def _filled(message: Any, top: Any, fields: dict[str, Any]) -> Any:
    for name, value in fields.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            struct_class = _struct(top, set().union(*value))
            value = [_filled(struct_class(), top, one) for one in value]
        assert name in message.FIELDS, (type(message), name)
        setattr(message, name, value)
    return message


def _struct(top: Any, names: set[str]) -> Any:
    """The nested struct with these fields."""
    nested = [each for each in vars(top).values() if isinstance(each, type) and issubclass(each, Struct)]
    (found,) = [each for each in nested if names <= set(each.FIELDS) and len(names) >= len(each.FIELDS) - 3][:1]
    return found


def requests(hidden_id: bytes) -> Iterator[Request]:
    """One or more of each API, of a topic, a group or an id that the ACLs may speak of, and of others."""
    names = ("t", "hidden", "none")
    record = encode_batch([(b"k", b"v", (), 0)])
    part = {"index": 0, "records": bytes(record)}
    yield False, make(0, acks=1, timeout_ms=1000, topic_data=[{"name": n, "partition_data": [part]} for n in names]), 12
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
    asked |= {"last_fetched_epoch": -1, "log_start_offset": -1}
    for replica in (-1, 5):
        fetched = [{"topic": n, "partitions": [asked]} for n in names]
        yield False, make(1, replica_id=replica, max_bytes=10_000, topics=fetched, session_epoch=-1), 12
    times = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    yield False, make(2, replica_id=-1, topics=[{"name": n, "partitions": [times]} for n in names]), 9
    all_operations = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    yield False, make(3, topics=[{"name": n, "topic_id": bytes(16)} for n in names], **all_operations), 12
    yield False, make(3, topics=[{"name": None, "topic_id": hidden_id}], **all_operations), 12
    yield False, make(3, topics=None, include_cluster_authorized_operations=True), 9
    yield False, make(3, topics=None, **all_operations), 12
    offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "", "committed_leader_epoch": -1}
    for group in ("g", "other"):
        yield False, make(8, group_id=group, topics=[{"name": n, "partitions": [offset]} for n in names]), 9
        wanted = [{"name": n, "partition_indexes": [0]} for n in names]
        yield False, make(9, groups=[{"group_id": group, "member_epoch": -1, "topics": wanted}]), 9
        yield False, make(9, groups=[{"group_id": group, "member_epoch": -1, "topics": None}]), 9
        yield False, make(9, group_id=group, topics=None), 7
    yield False, make(10, key_type=0, coordinator_keys=["g", "other"]), 4
    yield False, make(10, key_type=0, key="g"), 3
    protocol = [{"name": "range", "metadata": b""}]
    timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    yield False, make(11, group_id="g", protocol_type="consumer", protocols=protocol, **timeouts), None
    yield False, make(12, group_id="g", member_id="m", generation_id=1), None
    yield False, make(13, group_id="g"), None
    sync = {"protocol_type": "consumer", "protocol_name": "range"}
    yield False, make(14, group_id="g", member_id="m", generation_id=1, **sync), None
    yield False, make(15, groups=["g", "other", "g-2"], include_authorized_operations=True), 5
    yield False, make(16), None
    yield False, make(21, timeout_ms=1000, topics=[{"name": n, "partitions": [_from(0)]} for n in names]), None
    yield False, make(22, transactional_id=None, transaction_timeout_ms=1000), None
    epoch = {"partition": 0, "leader_epoch": 0, "current_leader_epoch": -1}
    yield False, make(23, replica_id=-2, topics=[{"topic": n, "partitions": [epoch]} for n in names]), None
    yield False, make(35, topics=[]), None
    yield False, make(42, groups_names=["none", "none-2"]), None
    yield False, make(47, group_id="none", topics=[{"name": "t", "partitions": [{"partition_index": 0}]}]), None
    yield False, make(61, topics=[{"name": n, "partition_indexes": [0]} for n in names]), None
    yield False, make(66), None
    yield False, make(74), None
    yield False, make(75, topics=[]), None
    yield False, make(75, topics=[{"name": n} for n in names]), None
    yield False, make(75, topics=[{"name": n} for n in names], response_partition_limit=1), None
    for controller in (False, True):
        endpoint = 2 if controller else 1
        yield controller, make(60, include_cluster_authorized_operations=True, endpoint_type=endpoint), 1
        yield from ((controller, request, version) for request, version in administration(hidden_id))


def nodes_only() -> Iterator[Request]:
    """What only nodes may ask each other; Apache Kafka ends where such a request is allowed and means nothing."""
    nobody = {"broker_id": 99, "broker_epoch": 1}
    yield True, make(56, **nobody), None
    yield True, make(58, request_data=b"", client_host_address=bytes(4)), None
    yield True, make(59), None
    yield True, make(62, broker_id=99, cluster_id="x"), None
    yield True, make(63, **nobody), None
    yield True, make(67, **nobody), None


def _from(offset: int) -> dict[str, Any]:
    return {"partition_index": 0, "offset": offset}


def administration(hidden_id: bytes) -> Iterator[tuple[Any, int | None]]:
    """What brokers forward, asked of both."""
    new = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    made = [{"name": n, **new} for n in ("t-new", "none", "twice", "twice")]
    yield make(19, topics=made, validate_only=True, timeout_ms=9000), None
    gone = [{"name": n, "topic_id": bytes(16)} for n in ("t", "none", "hidden")]
    yield make(20, topics=[*gone, {"name": None, "topic_id": hidden_id}], timeout_ms=9000), None
    everything = {"resource_type_filter": 1, "operation": 1, "permission_type": 1, "pattern_type_filter": 1}
    nothing = everything | {"resource_name_filter": None, "principal_filter": "User:nobody", "host_filter": None}
    yield make(29, **nothing), None
    acl = {"resource_type": 2, "resource_pattern_type": 3, "principal": "User:x", "host": "*", "operation": 3}
    yield make(30, creations=[acl | {"resource_name": "", "permission_type": 3}]), None
    yield make(31, filters=[nothing]), None
    kinds = ((2, "t"), (2, "hidden"), (4, "0"), (4, ""))
    described = [{"resource_type": k, "resource_name": n, "configuration_keys": ["x"]} for k, n in kinds]
    yield make(32, resources=described), None
    altered = [{"resource_type": k, "resource_name": n, "configs": []} for k, n in kinds]
    yield make(33, resources=altered, validate_only=True), None
    yield make(44, resources=altered, validate_only=True), None
    grown = [{"name": n, "count": 1, "assignments": None} for n in ("t", "hidden", "none")]
    yield make(37, topics=grown, validate_only=True, timeout_ms=9000), None
    elected = [{"topic": "t", "partitions": [0], "desired_leaders": None}]
    yield make(43, topic_partitions=elected, timeout_ms=9000), 2
    yield make(45, topics=[], timeout_ms=9000), None
    yield make(46, topics=None, timeout_ms=9000), None
    yield make(55, topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]), None
    yield make(57, feature_updates=[], validate_only=True, timeout_ms=9000), 1
    yield make(64, broker_id=99), None


@dataclass
class Server:
    """A node, seen from one address."""

    host: str
    broker: int
    controller: int

    def ask(self, request: Any, version: int | None = None, controller: bool = False) -> Any:
        """The answer; "closed" where the connection is closed instead."""
        spoken = request.MAX_VERSION if version is None else version
        port = self.controller if controller else self.broker
        with socket.create_connection((HERE, port), PATIENCE_S, source_address=(self.host, 0)) as connection:
            header = RequestHeader(request.API_KEY, spoken, 1, "permissions")
            connection.sendall(b"".join(encode_request(header, request)))  # type: ignore[arg-type]
            try:
                (size,) = struct.unpack(">i", _exactly(connection, 4))
                frame = _exactly(connection, size)
            except ConnectionError:
                return "closed"
        return decode_response(request.API_KEY, spoken, memoryview(frame))[1]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("closed by the server")
        data += piece
    return data


def received(answer: Any) -> Any:
    """What an answer tells of permissions, in an order of its own."""
    if isinstance(answer, Struct):
        parts = {}
        for name in answer.FIELDS:
            value = getattr(answer, name)
            if name in NOT_COMPARED:
                continue
            if name in ("error_code", "topic_config_error_code"):
                parts[name] = value if value in DENIALS else "served"
            elif name in SHOWN and not isinstance(value, list | Struct):
                parts[name] = value
            elif isinstance(value, list) and received(value):
                # an empty list tells what no list does
                parts[name] = received(value)
        return parts
    if isinstance(answer, list):
        return sorted((received(each) for each in answer if isinstance(each, Struct)), key=repr)
    return answer


def random_acls(rng: random.Random) -> list[Acl]:
    """Nothing that would let 127.0.0.2 change what the next question is about: no DELETE of what is there."""
    acls: list[Acl] = []
    for _ in range(rng.randint(0, 7)):
        kind = rng.choice((TOPIC, TOPIC, GROUP, CLUSTER, CLUSTER, TRANSACTIONAL_ID))
        permission = rng.choice(
            (AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)
        )
        pattern = rng.choice((PatternType.LITERAL, PatternType.PREFIXED))
        if kind is CLUSTER:
            name, pattern = CLUSTER_NAME, PatternType.LITERAL
            operation = rng.choice([o for o in _operations() if o not in (AclOperation.DELETE, AclOperation.ALL)])
        else:
            name = rng.choice({TOPIC: ("t", "none", "*", "h"), GROUP: ("g", "*", "none")}.get(kind, ("x", "*")))
            operation = rng.choice(_operations())
        harmless = permission is AclPermissionType.DENY or kind is CLUSTER or name == "none"
        if operation in (AclOperation.DELETE, AclOperation.ALL) and not harmless:
            operation = AclOperation.DESCRIBE
        acls.append((kind, name, pattern, operation, permission))
    return list(dict.fromkeys(acls))


def _operations() -> list[AclOperation]:
    return [o for o in AclOperation if AclOperation.ALL <= o <= AclOperation.IDEMPOTENT_WRITE]


def creation(host: str, acl: Acl) -> dict[str, Any]:
    kind, name, pattern, operation, permission = acl
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern,
        "principal": ANONYMOUS,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def acls_of(server: Server, host: str, controller: bool) -> set[tuple[Any, ...]]:
    answer = server.ask(_everything(29, host), controller=controller)
    return {
        (r.resource_type, r.resource_name, r.pattern_type, a.operation, a.permission_type)
        for r in answer.resources
        for a in r.acls
    }


def _everything(key: int, host: str) -> Any:
    fields = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    fields |= {"host_filter": host}
    if key == 29:
        return make(29, **fields)
    return make(31, filters=[fields | {"resource_name_filter": None, "principal_filter": None}])


def replace_acls(operator: Server, host: str, acls: list[Acl]) -> None:
    """Returns once both listeners decide by them."""
    if host == THERE:
        operator.ask(_everything(31, host))
    if acls:
        results = operator.ask(make(30, creations=[creation(host, acl) for acl in acls])).results
        assert not any(result.error_code for result in results), results
    for controller in (False, True):
        eventually(lambda on=controller: acls_of(operator, host, on) == set(acls), "the ACLs")


def prepare(operator: Server) -> bytes:
    """Topics, a group with an offset, and the operator's permissions. The id of the topic `hidden`."""
    everything = [
        (kind, CLUSTER_NAME if kind is CLUSTER else "*", PatternType.LITERAL, AclOperation.ALL, AclPermissionType.ALLOW)
        for kind in (CLUSTER, TOPIC, GROUP, TRANSACTIONAL_ID)
    ]
    replace_acls(operator, HERE, everything)
    new = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    operator.ask(make(19, topics=[{"name": n, **new} for n in ("t", "hidden")], timeout_ms=20_000))
    asked = make(3, topics=[{"name": n, "topic_id": bytes(16)} for n in ("t", "hidden", "__consumer_offsets")])

    def described() -> Any:
        operator.ask(make(10, key_type=0, coordinator_keys=["g"]), 4)
        return operator.ask(asked, 12).topics

    eventually(
        lambda: all(not t.error_code and all(not p.error_code for p in t.partitions) for t in described()), "leaders"
    )
    offset = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "", "committed_leader_epoch": -1}
    committed = make(8, group_id="g", topics=[{"name": "t", "partitions": [offset]}])
    eventually(lambda: operator.ask(committed, 9).topics[0].partitions[0].error_code == 0, "a commit")
    return bytes(next(t.topic_id for t in described() if t.name == "hidden"))


def transcript(broker: int, controller: int) -> list[tuple[str, Any]]:
    operator, client = Server(HERE, broker, controller), Server(THERE, broker, controller)
    hidden_id = prepare(operator)
    rng = random.Random(SEED)
    lines = []
    for number in range(SETS):
        acls = random_acls(rng) if number else []
        replace_acls(operator, THERE, acls)
        shown = [f"{a[4].name} {a[3].name} on {a[0].name} {a[1]} {a[2].name}" for a in acls]
        is_node = (
            CLUSTER,
            CLUSTER_NAME,
            PatternType.LITERAL,
            AclOperation.CLUSTER_ACTION,
            AclPermissionType.ALLOW,
        ) in acls
        for on_controller, request, version in (*requests(hidden_id), *(() if is_node else nodes_only())):
            answer = received(client.ask(request, version, on_controller))
            where = "controller" if on_controller else "broker"
            lines.append((f"{type(request).__name__} v{version} to the {where} under {shown}", answer))
    return lines


@contextmanager
def prepared() -> Iterator[tuple[Path, int, int]]:
    """A directory with a node's server.properties, and its ports."""
    with tempfile.TemporaryDirectory(prefix="permissions-") as directory:
        address = nodes.write_properties(Path(directory))
        properties = Path(directory) / f"broker-{nodes.NODE_ID}" / "server.properties"
        text = properties.read_text()
        properties.write_text(text + "".join(f"{name}={value}\n" for name, value in AUTHORIZED.items()))
        (listeners,) = [line for line in text.splitlines() if line.startswith("listeners=")]
        yield Path(directory), int(address.rpartition(":")[2]), int(listeners.rpartition(":")[2])


def of_heirlog() -> list[tuple[str, Any]]:
    with prepared() as (directory, broker, controller), Cluster(data=directory, ledger=False):
        return transcript(broker, controller)


def of_kafka() -> list[tuple[str, Any]]:
    with prepared() as (directory, broker, controller):
        home = directory / f"broker-{nodes.NODE_ID}"
        with started(home) as node:
            node.wait_until_it_knows({nodes.NODE_ID}, f"{HERE}:{broker}")
            return transcript(broker, controller)


def is_meant(asked: str) -> bool:
    """A deviation that docs/compatibility.md lists: CLUSTER_ACTION elects leaders as well, as KIP-966 writes."""
    return asked.startswith("ElectLeaders") and "CLUSTER_ACTION" in asked


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError with the differences."""
    jars.fetch()
    ours, theirs = of_heirlog(), of_kafka()
    different = [
        f"{asked}:\n  Kafka   {their}\n  heirlog {our}"
        for (asked, our), (_, their) in zip(ours, theirs, strict=True)
        if our != their and not is_meant(asked)
    ]
    assert not different, f"{len(different)} of {len(ours)} answers differ:\n" + "\n".join(different[:20])
    return f"{len(ours)} answers under {SETS} sets of ACLs tell the same"
