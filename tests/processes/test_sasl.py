"""What a listener with SASL takes and refuses, byte by byte, over sockets against a running node.

`connections.max.reauth.ms` is set, so that sessions end.
"""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest
from processes.talking import Talk

from heirlog.blocking import Client
from heirlog.client.sasl import Plain, Scram
from heirlog.client.scram import delete_password, set_password
from heirlog.client.security import security_from_properties
from heirlog.local.secure import new_salt
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import decode_response
from heirlog.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    MetadataRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from heirlog.security.scram import ScramMechanism
from heirlog.testing import Cluster

REAUTH_MS = 8000
LOGIN_MS = 5000
"""Both: a busy machine may take a second for a step."""
USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node secret" user_node="node secret" user_alice="alice secret" user_bob="bob secret";'
)
WRONG = b"\0alice\0wrong"
RIGHT = b"\0alice\0alice secret"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "listener.name.sasl_plaintext.connections.max.reauth.ms": REAUTH_MS,
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "heirlog.authentication.timeout.ms": LOGIN_MS,
        "super.users": "User:node;User:alice",
    }
    with Cluster(nodes=1, combined=True, security="SASL_PLAINTEXT", config=config) as running:
        yield running


@pytest.fixture
def talk(cluster: Cluster) -> Iterator[Talk]:
    made = Talk(cluster)
    yield made
    made.sock.close()


def test_the_usual_way(talk: Talk) -> None:
    answer = talk.versions()
    assert {17, 18, 36} <= {api.api_key for api in answer.api_keys}
    assert talk.handshake().mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    answer = talk.token(RIGHT)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", REAUTH_MS)
    assert len(talk.metadata().brokers) == 1


def test_a_large_request_of_a_stranger_is_not_decoded(talk: Talk) -> None:
    talk.send(SaslHandshakeRequest(mechanism="x" * 5000), 1)
    assert talk.is_closed()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_of_a_token(talk: Talk, version: int) -> None:
    talk.handshake()
    assert talk.token(RIGHT, version).error_code == 0
    assert len(talk.metadata().brokers) == 1


def test_bare_tokens_after_the_first_version_of_the_handshake(talk: Talk) -> None:
    talk.handshake(version=0)
    talk.sock.sendall(struct.pack(">i", len(RIGHT)) + RIGHT)
    assert talk.frame() == b""
    assert len(talk.metadata().brokers) == 1


def test_a_bare_token_that_is_wrong_ends_the_connection(talk: Talk) -> None:
    talk.handshake(version=0)
    talk.sock.sendall(struct.pack(">i", len(WRONG)) + WRONG)
    assert talk.is_closed()


def test_scram_with_a_user_of_the_metadata(cluster: Cluster, talk: Talk) -> None:
    cluster.client_config("carol")
    password = (cluster.data / "security" / "carol.password").read_text()
    talk.handshake("SCRAM-SHA-256")
    client = Scram("SCRAM-SHA-256", "carol", password, "nonce")
    assert talk.token(client.first()).error_code == 0, "unknown for this mechanism, which only the end tells"
    other = Talk(cluster)
    assert other.handshake("SCRAM-SHA-512").error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert other.is_closed()


@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "SCRAM-SHA-512", "", "OAUTHBEARER"])
def test_a_mechanism_that_is_not_enabled_ends_the_connection(talk: Talk, mechanism: str) -> None:
    answer = talk.handshake(mechanism)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
    assert talk.is_closed()


def test_a_wrong_password_is_answered_late_and_with_a_close(talk: Talk) -> None:
    talk.handshake()
    began = time.monotonic()
    answer = talk.token(WRONG)
    assert time.monotonic() - began >= 0.095, "connection.failed.authentication.delay.ms"
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert talk.is_closed()


@pytest.mark.parametrize(
    "request_",
    [
        MetadataRequest(topics=[]),
        CreateTopicsRequest(),
        SaslAuthenticateRequest(auth_bytes=RIGHT),
    ],
    ids=["Metadata", "CreateTopics", "SaslAuthenticate"],
)
@pytest.mark.parametrize("greeted", [False, True])
def test_nothing_else_is_served_before_the_handshake(talk: Talk, request_: Any, greeted: bool) -> None:
    if greeted:
        talk.versions()
    talk.send(request_, request_.MAX_VERSION if not isinstance(request_, MetadataRequest) else 12)
    assert talk.is_closed()


def test_a_request_between_handshake_and_token_gets_its_error_and_a_close(talk: Talk) -> None:
    talk.handshake()
    talk.send(MetadataRequest(topics=None), 12)
    answer = talk.frame()
    assert answer is not None
    assert talk.is_closed()


def test_a_request_whose_answer_has_no_such_error_closes_the_connection_quietly(cluster: Cluster, talk: Talk) -> None:
    talk.handshake()
    talk.send(ProduceRequest(acks=1), 12)
    assert talk.is_closed()
    assert "request-failed" not in cluster.output(1)


def test_a_second_handshake_in_place_of_a_token_gets_its_error_and_a_close(talk: Talk) -> None:
    talk.handshake()
    answer = talk.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert talk.is_closed()


def test_api_versions_of_an_unknown_version_in_place_of_a_token_does_too(talk: Talk) -> None:
    talk.handshake()
    header = struct.pack(">hhih", 18, 99, 1, -1)
    talk.sock.sendall(struct.pack(">i", len(header)) + header)
    answer = decode_response(18, 0, memoryview(talk.frame() or b""))[1]
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert talk.is_closed()


def test_a_second_api_versions_ends_the_connection(talk: Talk) -> None:
    talk.versions()
    with pytest.raises(AssertionError, match="closed instead"):
        talk.versions()


def test_api_versions_of_an_unknown_version_may_be_asked_again(talk: Talk) -> None:
    header = struct.pack(">hhih", 18, 99, 1, -1)
    talk.sock.sendall(struct.pack(">i", len(header)) + header)
    answer = decode_response(18, 0, memoryview(talk.frame() or b""))[1]
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    refused = talk.ask(ApiVersionsRequest(client_software_name="!", client_software_version="1"), 3)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert talk.versions().error_code == 0
    talk.log_in(RIGHT)


@pytest.mark.parametrize("size", [-1, 0, 600_000, 2**31 - 1])
def test_a_large_frame_ends_the_connection_before_it_is_received(talk: Talk, size: int) -> None:
    talk.sock.sendall(struct.pack(">i", size))
    assert talk.is_closed()


def test_an_authenticated_client_may_send_large_frames(talk: Talk) -> None:
    talk.log_in(RIGHT)
    names = [MetadataRequest.MetadataRequestTopic(name=f"{'x' * 200}{number}") for number in range(5000)]
    answer = talk.ask(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12)
    assert len(answer.topics) == 5000


@pytest.mark.parametrize("said", [b"\x16\x03\x01\x02\x00" + bytes(200), b"GET / HTTP/1.1\r\n\r\n", bytes(100)])
def test_other_protocols_are_closed(talk: Talk, said: bytes) -> None:
    talk.sock.sendall(said)
    assert talk.is_closed()


def test_requests_that_come_with_the_token_are_served_under_its_principal(talk: Talk) -> None:
    """Pipelined: they wait until the token has been judged."""
    talk.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    talk.send(SaslAuthenticateRequest(auth_bytes=RIGHT), 2)
    talk.send(MetadataRequest(topics=[]), 12)
    assert talk.answer(SaslHandshakeRequest, 1).error_code == 0
    assert talk.answer(SaslAuthenticateRequest, 2).error_code == 0
    assert len(talk.answer(MetadataRequest, 12).brokers) == 1


def test_requests_that_come_with_a_wrong_token_are_not(cluster: Cluster, talk: Talk) -> None:
    talk.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    talk.send(SaslAuthenticateRequest(auth_bytes=WRONG), 2)
    topic = CreateTopicsRequest.CreatableTopic(name="sneaked-in", num_partitions=1, replication_factor=1)
    talk.send(CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7)
    talk.answer(SaslHandshakeRequest, 1)
    assert talk.answer(SaslAuthenticateRequest, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()
    other = Talk(cluster)
    other.log_in(RIGHT)
    assert "sneaked-in" not in [topic.name for topic in other.ask(MetadataRequest(topics=None), 12).topics]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_after_the_login_is_refused_and_changes_nothing(cluster: Cluster, version: int) -> None:
    talk = Talk(cluster)
    talk.log_in(b"\0bob\0bob secret")
    answer = talk.token(RIGHT, version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    topic = CreateTopicsRequest.CreatableTopic(name="of-bob", num_partitions=1, replication_factor=1)
    created = talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0]
    assert created.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED, "still bob, who may do nothing"


@pytest.mark.parametrize(
    ("chosen", "token"),
    [
        ("SCRAM-SHA-256", RIGHT),
        ("PLAIN", b"n,,n=alice,r=nonce"),
        ("SCRAM-SHA-256", b"n,,\x01auth=Bearer a.b.c\x01\x01"),
    ],
    ids=["PLAIN", "SCRAM", "OAUTHBEARER"],
)
def test_a_token_of_another_mechanism_than_the_chosen_one_is_refused(talk: Talk, chosen: str, token: bytes) -> None:
    talk.handshake(chosen)
    assert talk.token(token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()


@pytest.mark.parametrize(
    "token",
    [b"", b"\0alice\0", b"\0\0alice secret", b"bob\0alice\0alice secret", b"\0alice\0alice secret\0", b"\0*\0x"],
    ids=["nothing", "no password", "no name", "for another", "more", "everybody"],
)
def test_a_login_without_a_name_or_a_password_is_none(talk: Talk, token: bytes) -> None:
    talk.handshake()
    assert talk.token(token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()


def test_the_principal_is_who_logged_in(cluster: Cluster) -> None:
    """bob may do nothing, alice is a super user."""
    codes = {}
    for name in ("alice", "bob"):
        talk = Talk(cluster)
        talk.log_in(f"\0{name}\0{name} secret".encode())
        topic = CreateTopicsRequest.CreatableTopic(name=f"of-{name}", num_partitions=1, replication_factor=1)
        codes[name] = talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code
    assert codes == {"alice": 0, "bob": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_client_that_says_nothing_or_never_ends_is_closed_in_time(cluster: Cluster, talk: Talk) -> None:
    talk.versions()
    began = time.monotonic()
    slow = Talk(cluster)
    slow.handshake()
    slow.sock.sendall(struct.pack(">i", 100_000))
    slow.sock.settimeout(0.05)
    with pytest.raises(ConnectionError):
        # a byte of a token, again and again: no pause is long
        while time.monotonic() - began < 60:
            slow.sock.sendall(b"\0")
            with contextlib.suppress(TimeoutError):
                if not slow.sock.recv(1):
                    raise ConnectionError
    assert talk.is_closed()
    assert time.monotonic() - began > LOGIN_MS / 2000


def until_reauthentication_is_allowed() -> None:
    """After a login that has ended: the broker counts from when it began."""
    time.sleep(1.05)


def test_a_client_logs_in_again_on_the_same_connection(talk: Talk) -> None:
    talk.log_in(RIGHT)
    until_reauthentication_is_allowed()
    for _ in range(3):
        talk.send(MetadataRequest(topics=[]), 12)
    talk.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    talk.send(SaslAuthenticateRequest(auth_bytes=RIGHT), 2)
    talk.send(MetadataRequest(topics=[]), 12)
    for _ in range(3):
        assert len(talk.answer(MetadataRequest, 12).brokers) == 1
    assert talk.answer(SaslHandshakeRequest, 1).error_code == 0
    answer = talk.answer(SaslAuthenticateRequest, 2)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, REAUTH_MS)
    assert len(talk.answer(MetadataRequest, 12).brokers) == 1


def test_logging_in_again_at_once_is_refused_and_the_connection_lives(cluster: Cluster) -> None:
    for _ in range(20):
        talk, began = Talk(cluster), time.monotonic()
        talk.log_in(RIGHT)
        code = talk.handshake().error_code
        if time.monotonic() - began < 1:
            break  # a second later it would be welcome
    assert code == ErrorCode.ILLEGAL_SASL_STATE
    assert len(talk.metadata().brokers) == 1


@pytest.mark.parametrize("token", [b"\0bob\0bob secret", WRONG], ids=["another user", "wrong password"])
def test_a_connection_keeps_its_principal(talk: Talk, token: bytes) -> None:
    talk.log_in(RIGHT)
    until_reauthentication_is_allowed()
    assert talk.handshake().error_code == 0
    assert talk.token(token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()


def test_a_connection_keeps_its_mechanism(cluster: Cluster, talk: Talk) -> None:
    with by_alice(cluster) as client:
        client.run(set_password("alice", ScramMechanism.SHA_256, "alice secret", new_salt(), 4096))
    talk.log_in(RIGHT)
    until_reauthentication_is_allowed()
    answer = scram(talk, "alice")
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED and "mechanism" in answer.error_message
    assert talk.is_closed()


def by_alice(cluster: Cluster) -> Client:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    admin = security_from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} username="alice" password="alice secret";',
        }
    )
    return Client(cluster.bootstrap_servers, security=admin)


def test_a_user_whose_password_is_deleted_stays_until_it_has_to_log_in_again(cluster: Cluster, talk: Talk) -> None:
    with by_alice(cluster) as client:
        client.run(set_password("dave", ScramMechanism.SHA_256, "dave secret", new_salt(), 4096))
        assert scram(talk, "dave").error_code == ErrorCode.NONE
        client.run(delete_password("dave", ScramMechanism.SHA_256))
    assert len(talk.metadata().brokers) == 1
    until_reauthentication_is_allowed()
    assert scram(talk, "dave").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()


def test_who_is_half_way_through_logging_in_again_when_its_password_is_deleted_is_refused(
    cluster: Cluster, talk: Talk
) -> None:
    with by_alice(cluster) as client:
        client.run(set_password("erin", ScramMechanism.SHA_256, "erin secret", new_salt(), 4096))
        assert scram(talk, "erin").error_code == ErrorCode.NONE
        until_reauthentication_is_allowed()
        last = last_message(talk, "erin")
        client.run(delete_password("erin", ScramMechanism.SHA_256))
    assert talk.token(last).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.is_closed()


def scram(talk: Talk, user: str) -> Any:
    """The answer that ends a login."""
    return talk.token(last_message(talk, user))


def last_message(talk: Talk, user: str) -> bytes:
    """Of a login that is otherwise complete."""
    assert talk.handshake("SCRAM-SHA-256").error_code == ErrorCode.NONE
    client = Scram("SCRAM-SHA-256", user, f"{user} secret", "nonce")
    first = talk.token(client.first())
    assert first.error_code == ErrorCode.NONE
    last = client.answer(bytes(first.auth_bytes))
    assert last is not None
    return last


def test_a_large_token_ends_the_connection_also_when_logging_in_again(talk: Talk) -> None:
    talk.log_in(RIGHT)
    until_reauthentication_is_allowed()
    assert talk.handshake().error_code == 0
    talk.send(SaslAuthenticateRequest(auth_bytes=RIGHT + b"x" * 600_000), 2)
    assert talk.is_closed()


def test_another_request_while_logging_in_again_ends_the_connection(talk: Talk) -> None:
    talk.log_in(RIGHT)
    until_reauthentication_is_allowed()
    assert talk.handshake().error_code == 0
    talk.send(MetadataRequest(topics=[]), 12)
    talk.frame()
    assert talk.is_closed()


def test_a_session_that_has_ended_takes_nothing_but_a_login(cluster: Cluster, talk: Talk) -> None:
    talk.log_in(RIGHT)
    other = Talk(cluster)
    other.log_in(RIGHT)
    time.sleep(REAUTH_MS / 1000 + 0.1)
    talk.send(ProduceRequest(acks=1, timeout_ms=1000), 9)
    assert talk.is_closed()
    assert other.handshake().error_code == 0, "idle beyond the end, and welcome with a login"
    assert other.token(RIGHT).error_code == 0
    assert len(other.metadata().brokers) == 1


def test_failed_attempts_are_in_the_log_with_peer_and_name_and_without_the_password(cluster: Cluster) -> None:
    said = cluster.output(1)
    assert '"authentication-failed"' in said and '"127.0.0.1"' in said
    for secret in ("alice secret", "bob secret", "node secret", "wrong"):
        assert f"\0{secret}" not in said and f'"{secret}' not in said


def test_the_first_message_of_plain_is_what_our_client_sends() -> None:
    assert Plain("alice", "alice secret").first() == RIGHT
