"""What a node answers to requests about security, and how long it lets clients above a quota wait: here and on Apache
Kafka 4.2, from the same server.properties.

    logins    a connection begins with what a client may say, in a good or a bad order: ApiVersions, SaslHandshake,
              SaslAuthenticate, bare tokens, other APIs; and then what it may ask once it has logged in
    admin     SCRAM users, ACLs and quotas are changed and described, mostly well and sometimes not
    quotas    the same load under the same quota: the waits are equal up to one window

Every random decision is made before a node is asked, so both are asked the same. SECURITY_REQUESTS says how many
requests (2000 by hand), SECURITY_SEED which.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jars
from apache_kafka import PATIENCE_S, started
from permissions import make

from heirlog.client.sasl import Plain, Scram
from heirlog.local.layout import HOST
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response, encode_request
from heirlog.protocol.primitives import Struct
from heirlog.testing import Cluster, apache_kafka
from heirlog.testing.apache_kafka import free_ports

SEED = int(os.environ.get("SECURITY_SEED", "19"))
REQUESTS = int(os.environ.get("SECURITY_REQUESTS", "250"))
NODE_ID = 0
CLOSED = "closed"
RATE_OF_ADDRESS = "connection_creation_rate"
SETTLED_S = 10.0
WINDOW_MS = 1000
LOGIN = "org.apache.kafka.common.security"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
USERS = {"alice": "alice secret", "bob": "bob secret"}
MODULES = {
    "plain": f"{LOGIN}.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    + ";",
    "scram-sha-256": f"{LOGIN}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{LOGIN}.scram.ScramLoginModule required;",
}
TEXTS = frozenset(("error_message", "throttle_time_ms"))
UNORDERED = frozenset(
    ("results", "entries", "resources", "acls", "matching_acls", "credential_infos", "entity", "values")
)


@dataclass(frozen=True)
class Ports:
    open: int
    """PLAINTEXT: who comes here is a super user."""
    closed: int
    controller: int


@contextmanager
def prepared() -> Iterator[tuple[Path, Ports]]:
    """A directory with a node's server.properties, and its ports."""
    with tempfile.TemporaryDirectory(prefix="secured-requests-") as directory:
        home = Path(directory) / f"broker-{NODE_ID}"
        ports = Ports(*free_ports(3))
        places = {"OPEN": ports.open, "CLOSED": ports.closed, "CONTROLLER": ports.controller}
        clients = {name: port for name, port in places.items() if name != "CONTROLLER"}
        properties = {
            "process.roles": "broker,controller",
            "node.id": NODE_ID,
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in places.items()),
            "advertised.listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in clients.items()),
            "listener.security.protocol.map": "OPEN:PLAINTEXT,CLOSED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{ports.controller}",
            "inter.broker.listener.name": "OPEN",
            "log.dirs": home / "log",
            "sasl.enabled.mechanisms": MECHANISMS,
            **{f"listener.name.closed.{name}.sasl.jaas.config": module for name, module in MODULES.items()},
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:alice",
            "connection.failed.authentication.delay.ms": 0,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
        }
        apache_kafka.write_properties(home, properties)
        yield Path(directory), ports


# -- one connection


@dataclass
class Talk:
    port: int
    sock: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.sock = socket.create_connection((HOST, self.port), PATIENCE_S)

    def ask(self, request: Any, version: int) -> Any:
        header = RequestHeader(request.API_KEY, version, 1, "secured")
        raw = self.exchange(b"".join(encode_request(header, request)))  # type: ignore[arg-type]
        return CLOSED if raw == CLOSED else decode_response(request.API_KEY, version, memoryview(raw))[1]

    def ask_versions(self, version: int, name: str = "x") -> Any:
        """The error of ApiVersions; which APIs there are, and their versions, is compared elsewhere."""
        if version <= 4:
            answer = self.ask(make(18, client_software_name=name, client_software_version="1"), version)
            return CLOSED if answer == CLOSED else answer.error_code
        raw = self.exchange(struct.pack(">ihhihb", 11, 18, version, 1, -1, 0))
        return CLOSED if raw == CLOSED else int.from_bytes(raw[4:6], "big")

    def exchange(self, framed: bytes) -> Any:
        """The bytes of the next frame; CLOSED if there is none."""
        try:
            self.sock.sendall(framed)
            (size,) = struct.unpack(">i", self._exactly(4))
            return self._exactly(size)
        except ConnectionError:
            return CLOSED

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return data


def shown(answer: Any) -> Any:
    """What can be compared: no texts, and no order where Kafka has none."""
    if isinstance(answer, Struct):
        parts = {name: shown(getattr(answer, name)) for name in answer.FIELDS if name not in TEXTS}
        return {n: sorted(p, key=repr) if n in UNORDERED and p else p for n, p in parts.items()}
    if isinstance(answer, list):
        return [shown(each) for each in answer]
    return bytes(answer) if isinstance(answer, memoryview | bytearray) else answer


# -- logins

Step = tuple[str, Any]


def random_login(rng: random.Random) -> list[Step]:
    """Steps of one connection: what is said, and how."""
    good = [("versions", rng.choice((0, 3, 4)))] if rng.random() < 0.6 else []
    mechanism = rng.choice(MECHANISMS.split(","))
    handshake = rng.choice((0, 1, 1, 1))
    user, password = rng.choice(list(USERS.items()))
    wrong = rng.random()
    if wrong < 0.15:
        mechanism = rng.choice(("plain", "GSSAPI", "", "OAUTHBEARER2", "SCRAM-SHA-1"))
    if wrong > 0.85:
        password = rng.choice(("", "x", password + " "))
    if wrong > 0.97:
        user = rng.choice(("nobody", "", "a=b", "\u00e4"))
    steps = [*good, ("handshake", (mechanism, handshake)), ("login", (mechanism, user, password))]
    after: list[Step] = [("api", rng.choice((3, 18, 29, 48, 50, 17, 36, 60))) for _ in range(rng.choice((0, 1, 2, 3)))]
    steps += after
    for _ in range(rng.choice((0, 0, 1, 2))):
        intruder: Step = rng.choice(
            (
                ("versions", rng.choice((0, 1, 2, 3, 4, 99))),
                ("names", rng.choice(("", "a b", "-x", "x"))),
                ("handshake", ("PLAIN", rng.choice((0, 1)))),
                ("token", rng.choice((b"", b"\0", b"y,,n=alice,r=x", b"\0alice\0alice secret", bytes(300)))),
                ("api", rng.choice((1, 3, 22, 29, 48, 50))),
                ("raw", rng.choice((struct.pack(">i", 600_000), struct.pack(">ih", 2, 3), struct.pack(">i", -1)))),
            )
        )
        # who is in may announce a large frame, and both wait for it
        last = [kind for kind, _ in steps].index("handshake") if intruder[0] == "raw" else len(steps)
        steps.insert(rng.randrange(last + 1), intruder)
    return steps


def play_login(port: int, steps: list[Step]) -> list[Any]:
    talk = Talk(port)
    received: list[Any] = []
    try:
        for kind, what in steps:
            received.append(_step(talk, kind, what))
            if received[-1] == CLOSED or (isinstance(received[-1], list) and CLOSED in received[-1]):
                break
    finally:
        talk.sock.close()
    return received


def _step(talk: Talk, kind: str, what: Any) -> Any:
    if kind == "versions":
        return talk.ask_versions(what)
    if kind == "names":
        return talk.ask_versions(3, what)
    if kind == "handshake":
        mechanism, version = what
        answer = talk.ask(make(17, mechanism=mechanism), version)
        return CLOSED if answer == CLOSED else (answer.error_code, sorted(answer.mechanisms))
    if kind == "login":
        return _log_in(talk, *what)
    if kind == "token":
        return _token(talk, what)
    if kind == "raw":
        return talk.exchange(what)
    answer = talk.ask(_small(what), {3: 12, 18: 3, 17: 1, 36: 2}.get(what, _small(what).MAX_VERSION))
    if answer == CLOSED or what not in (17, 36, 29, 48, 50):
        return CLOSED if answer == CLOSED else type(answer).__name__
    return shown(answer)


def _small(key: int) -> Any:
    if key == 29:
        return make(29, resource_type_filter=1, operation=1, permission_type=1, pattern_type_filter=1)
    if key == 3:
        return make(3, topics=[], allow_auto_topic_creation=False)
    if key == 0:
        return make(0, acks=1, timeout_ms=1000)
    if key == 17:
        return make(17, mechanism="PLAIN")
    if key == 36:
        return make(36, auth_bytes=b"\0alice\0alice secret")
    return make(key)


def _log_in(talk: Talk, mechanism: str, user: str, password: str) -> Any:
    """A whole exchange, and how it ends. After how many messages may differ: here a SCRAM user that does not exist is
    refused with the last one, so that nobody learns which users there are."""
    if mechanism.startswith("SCRAM-SHA-") and mechanism in MECHANISMS:
        exchange: Any = Scram(mechanism, user, password, "nonce0123456789")
    else:
        exchange = Plain(user, password)
    token = exchange.first()
    received: list[Any] = []
    while token is not None:
        answer = _token_answer(talk, token)
        if answer == CLOSED or answer.error_code:
            received = [CLOSED if answer == CLOSED else answer.error_code]
            if answer != CLOSED and answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                received.append(CLOSED)
            break
        try:
            token = exchange.answer(bytes(answer.auth_bytes))
        except Exception as error:  # a challenge that is none is a result as well
            received.append(type(error).__name__)
            break
        received = ["answered"]
    return received


def _token(talk: Talk, token: bytes) -> Any:
    answer = _token_answer(talk, token)
    return CLOSED if answer == CLOSED else (answer.error_code, bool(answer.auth_bytes))


def _token_answer(talk: Talk, token: bytes) -> Any:
    return talk.ask(make(36, auth_bytes=token), 2)


# -- administration


def random_administration(rng: random.Random) -> tuple[Any, int]:
    return rng.choice((_scram, _described_scram, _acls, _acl_filters, _quotas, _described_quotas))(rng)


def _scram(rng: random.Random) -> tuple[Any, int]:
    names = ("u1", "u2", "u3", "a,b=c", "")
    upsertions = [
        {
            "name": rng.choice(names),
            "mechanism": mechanism,
            "iterations": rng.choice((4096, 8192, 16384, 4095, 16385, -1)) if rng.random() < 0.4 else 4096,
            "salt": b"0123456789abcdef",
            # Kafka takes any length
            "salted_password": bytes(64 if mechanism == 2 else 32),
        }
        for mechanism in rng.choices((1, 1, 2, 2, 0, 9), k=rng.choice((0, 1, 1, 2, 3)))
    ]
    deletions = [
        {"name": rng.choice(names), "mechanism": rng.choice((1, 2, 0))} for _ in range(rng.choice((0, 0, 1, 2)))
    ]
    return make(51, deletions=deletions, upsertions=upsertions), 0


def _described_scram(rng: random.Random) -> tuple[Any, int]:
    users = rng.choice((None, [], ["u1"], ["u1", "u2"], ["nobody"], ["u1", "u1"], [""]))
    return make(50, users=None if users is None else [{"name": name} for name in users]), 0


def _acls(rng: random.Random) -> tuple[Any, int]:
    creations = [
        {
            "resource_type": rng.choice((2, 3, 4, 5, 6, 7, 0, 1)) if rng.random() < 0.5 else 2,
            "resource_name": rng.choice(("t", "t2", "kafka-cluster", "*", "")) if rng.random() < 0.9 else "User:x",
            "resource_pattern_type": rng.choice((3, 3, 4, 0, 1, 2)),
            "principal": rng.choice(("User:x", "User:*", "x", "", "User:", "Group:x")),
            "host": rng.choice(("*", "10.0.0.1", "")),
            "operation": rng.choice(range(16)),
            "permission_type": rng.choice((2, 3, 3, 0, 1)),
        }
        for _ in range(rng.choice((1, 1, 2)))
    ]
    return make(30, creations=creations), rng.choice((1, 2, 3))


def _filter(rng: random.Random) -> dict[str, Any]:
    return {
        "resource_type_filter": rng.choice((1, 1, 2, 4, 0)),
        "resource_name_filter": rng.choice((None, None, "t", "nothing")),
        "pattern_type_filter": rng.choice((1, 1, 2, 3, 4, 0)),
        "principal_filter": rng.choice((None, None, "User:x", "x")),
        "host_filter": rng.choice((None, None, "*")),
        "operation": rng.choice((1, 1, 3, 0)),
        "permission_type": rng.choice((1, 1, 3, 0)),
    }


def _acl_filters(rng: random.Random) -> tuple[Any, int]:
    if rng.random() < 0.6:
        return make(29, **_filter(rng)), rng.choice((1, 2, 3))
    return make(31, filters=[_filter(rng) for _ in range(rng.choice((1, 2)))]), rng.choice((1, 2, 3))


def _quotas(rng: random.Random) -> tuple[Any, int]:
    entities = (
        [("user", "q1")], [("user", None)], [("client-id", "c1")], [("user", "q1"), ("client-id", "c1")],
        [("user", "q1"), ("client-id", None)], [("ip", "10.0.0.1")], [("ip", None)],
        [("ip", "10.0.0.1"), ("user", "q1")], [("group", "x")], [], [("user", "")], [("ip", "not an address")],
    )  # fmt: skip
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
            RATE_OF_ADDRESS, "unknown_rate")  # fmt: skip
    used: list[Any] = rng.sample(entities, rng.choice((1, 1, 2)))
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [
                {
                    "key": key,
                    "value": rng.choice((1.0, 1000.0, 1.5, 0.0, -1.0, 2.0**40)),
                    "remove": rng.random() < 0.3,
                }
                for key in rng.sample(keys, rng.choice((1, 1, 2)))
            ],
        }
        for entity in used
    ]
    return make(49, entries=entries, validate_only=rng.random() < 0.15), rng.choice((0, 1))


def _described_quotas(rng: random.Random) -> tuple[Any, int]:
    components = [
        {"entity_type": kind, "match_type": how, "match": name}
        for kind, how, name in rng.sample(
            (
                ("user", 0, "q1"), ("user", 1, None), ("user", 2, None), ("client-id", 0, "c1"), ("client-id", 2, None),
                ("ip", 0, "10.0.0.1"), ("ip", 2, None), ("user", 0, None), ("user", 1, "q1"), ("user", 7, None),
                ("group", 2, None), ("", 2, None),
            ),
            rng.choice((0, 1, 1, 2)),
        )
    ]  # fmt: skip
    return make(48, components=components, strict=rng.random() < 0.4), rng.choice((0, 1))


# -- quotas


def waits_of_producer(ports: Ports) -> list[int]:
    """Times to wait of a client that sends as soon as it is answered. Leaves the quota as it was."""
    asked = _with_quota(ports, "producer_byte_rate", 20_000.0)
    batch = bytes(encode_batch([(None, bytes(30_000), (), 0)]))
    data = [{"name": "load", "partition_data": [{"index": 0, "records": batch}]}]
    talk = Talk(ports.open)
    waits = []
    for _ in range(9):
        answer = talk.ask(make(0, acks=1, timeout_ms=10_000, topic_data=data), 9)
        assert not answer.responses[0].partition_responses[0].error_code, shown(answer)
        waits.append(answer.throttle_time_ms)
    asked()
    return waits


def waits_of_consumer(ports: Ports) -> list[tuple[int, bool]]:
    """With whether there were records."""
    asked = _with_quota(ports, "consumer_byte_rate", 20_000.0)
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 20_000, "current_leader_epoch": -1}
    partition |= {"last_fetched_epoch": -1, "log_start_offset": -1}
    talk = Talk(ports.open)
    waits = []
    for _ in range(8):
        # less than the first batch has, so both send exactly that one: Kafka would cut a second one
        fetched = [{"topic": "load", "partitions": [partition]}]
        answer = talk.ask(
            make(1, replica_id=-1, max_bytes=20_000, min_bytes=1, topics=fetched, session_epoch=-1, session_id=0), 11
        )
        waits.append((answer.throttle_time_ms, bool(answer.responses)))
    asked()
    return waits


def waits_of_admin(ports: Ports) -> list[tuple[int, list[int]]]:
    asked = _with_quota(ports, "controller_mutation_rate", 2.0)
    talk = Talk(ports.open)
    waits = []
    for number in range(4):
        topic = {
            "name": f"made-{number}",
            "num_partitions": 10,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        answer = talk.ask(make(19, topics=[topic], timeout_ms=10_000), 6)
        waits.append((answer.throttle_time_ms, [one.error_code for one in answer.topics]))
        talk.sock.close()
        talk = Talk(ports.open)  # which has not to wait
    asked()
    return waits


def waits_of_address(ports: Ports) -> list[tuple[int, bool]]:
    """Until each of many connections that come at once is closed, and whether it is answered instead."""
    asked = _with_quota(ports, RATE_OF_ADDRESS, 1.0, ("ip", HOST))
    talks, began = [Talk(ports.closed) for _ in range(15)], time.monotonic()
    waits = []
    for talk in talks:
        is_answered = talk.ask_versions(3) != CLOSED
        waits.append((0 if is_answered else round(1000 * (time.monotonic() - began)), is_answered))
    asked()
    for talk in talks:
        talk.sock.close()
    return waits


def _with_quota(
    ports: Ports, key: str, value: float, of: tuple[str, str] = ("user", "ANONYMOUS")
) -> Callable[[], None]:
    kind, name = of
    # one connection, made before: it may not be made any more while the quota counts
    talk = Talk(ports.open)

    def alter(remove: bool) -> None:
        entity = [{"entity_type": kind, "entity_name": name}]
        op = {"key": key, "value": value, "remove": remove}
        answer = talk.ask(make(49, entries=[{"entity": entity, "ops": [op]}]), 1)
        assert not answer.entries[0].error_code
        deadline = time.monotonic() + SETTLED_S
        exact = [{"entity_type": kind, "match_type": 0, "match": name}]
        while bool(talk.ask(make(48, components=exact, strict=True), 1).entries) is remove:
            assert time.monotonic() < deadline, "a quota does not reach the broker"

    def end() -> None:
        alter(True)
        talk.sock.close()

    alter(False)
    return end


# -- both


@contextmanager
def both() -> Iterator[tuple[Ports, Ports]]:
    """Apache Kafka's ports and heirlog's. Raises jars.Missing."""
    with (
        prepared() as (theirs, kafka),
        prepared() as (ours, heirlog),
        started(theirs / f"broker-{NODE_ID}") as node,
        Cluster(data=ours, ledger=False),
    ):
        node.wait_until_it_knows({NODE_ID}, f"{HOST}:{kafka.open}")
        for ports in (kafka, heirlog):
            topic = {"name": "load", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
            Talk(ports.open).ask(make(19, topics=[topic], timeout_ms=20_000), 6)
            _wait_for_leader(ports)
        yield kafka, heirlog


def _wait_for_leader(ports: Ports) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = Talk(ports.open).ask(make(3, topics=[{"name": "load", "topic_id": bytes(16)}]), 12)
        if not answer.topics[0].error_code and not answer.topics[0].partitions[0].error_code:
            return
        assert time.monotonic() < deadline, "the topic has no leader"
        time.sleep(0.1)


def compare_requests(kafka: Ports, heirlog: Ports) -> list[str]:
    rng = random.Random(SEED)
    different: list[str] = []
    count = 0
    always_connected = [Talk(ports.open) for ports in (kafka, heirlog)]
    while count < REQUESTS:
        if rng.random() < 0.4:
            steps = random_login(rng)
            count += len(steps)
            theirs, ours = (play_login(ports.closed, steps) for ports in (kafka, heirlog))
            if theirs != ours:
                different.append(f"{steps}:\n  Kafka   {theirs}\n  heirlog {ours}")
            continue
        request, version = random_administration(rng)
        count += 1
        theirs, ours = (shown(Talk(ports.open).ask(request, version)) for ports in (kafka, heirlog))
        deadline = time.monotonic() + SETTLED_S
        # Kafka's broker may not know yet what its controller has answered
        while request.API_KEY in (29, 48, 50) and theirs != ours and time.monotonic() < deadline:
            time.sleep(0.05)
            theirs, ours = (shown(Talk(ports.open).ask(request, version)) for ports in (kafka, heirlog))
        if theirs != ours:
            different.append(f"{request} v{version}:\n  Kafka   {theirs}\n  heirlog {ours}")
        if request.API_KEY == 49:
            for connected in always_connected:
                _let_addresses_connect(connected, count)
    return different


def _let_addresses_connect(connected: Talk, number: int) -> None:
    """Takes back a rate of connections for every address, and waits until the broker knows that.

    Until then Kafka closes the connection that is the eleventh in eleven seconds, unanswered, and counts those of all
    times in which there was such a rate together: which request it hits would be a matter of time. So this needs a
    connection that was made before. number: another one each time, by which the broker shows how much it knows.
    """
    marker = "settled"
    entries = [
        {
            "entity": [{"entity_type": "ip", "entity_name": None}],
            "ops": [{"key": RATE_OF_ADDRESS, "value": 0.0, "remove": True}],
        },
        {
            "entity": [{"entity_type": "client-id", "entity_name": marker}],
            "ops": [{"key": "producer_byte_rate", "value": float(number), "remove": False}],
        },
    ]
    connected.ask(make(49, entries=entries, validate_only=False), 1)
    described = make(48, components=[{"entity_type": "client-id", "match_type": 0, "match": marker}], strict=True)
    deadline = time.monotonic() + SETTLED_S
    while [value.value for entry in connected.ask(described, 1).entries for value in entry.values] != [number]:
        assert time.monotonic() < deadline, "a quota does not reach the broker"


def compare_quotas(kafka: Ports, heirlog: Ports) -> str:
    plays = {
        "produce": waits_of_producer,
        "fetch": waits_of_consumer,
        "mutations": waits_of_admin,
        "connections": waits_of_address,
    }
    for name, play in plays.items():
        theirs: Any
        ours: Any
        theirs, ours = play(kafka), play(heirlog)
        for their, our in zip(theirs, ours, strict=True):
            their_ms, *their_rest = their if isinstance(their, tuple) else (their,)
            our_ms, *our_rest = our if isinstance(our, tuple) else (our,)
            assert abs(their_ms - our_ms) <= WINDOW_MS and their_rest == our_rest, (
                f"waits of {name} differ:\n  Kafka   {theirs}\n  heirlog {ours}"
            )
        assert any(their if isinstance(their, int) else their[0] for their in theirs), f"{name}: nobody had to wait"
    return "waits of produce, fetch, mutation and connection quotas"


def check() -> str:
    """How much was compared. Raises jars.Missing; AssertionError with the differences."""
    jars.fetch()
    with both() as (kafka, heirlog):
        waits = compare_quotas(kafka, heirlog)
        different = compare_requests(kafka, heirlog)
    assert not different, f"seed {SEED}: {len(different)} answers differ:\n" + "\n".join(different[:20])
    return f"{REQUESTS} requests about security, {waits}: as Apache Kafka"
