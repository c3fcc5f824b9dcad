"""CreateDelegationToken through a node: versions, who may ask for whom, and connections on which nobody may."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, ALICE, CONTROLLER, HOST, Guarded
from apis.issuing_tokens import closed_node, creating

from heirlog.apis.common.envelopes import envelope_of, principal_bytes, principal_text
from heirlog.context import Context
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.frames import RequestHeader, decode_response

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
NOT_AUTHORIZED = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def one() -> Guarded:
    return closed_node()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_client_gets_a_token_of_its_own_without_any_acl(node: Guarded, listener: str, version: int) -> None:
    made = node.ask(creating(renewers=("bob",)), version, listener=listener)
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert made.token_requester_principal_name == ("alice" if version == 3 else "")
    stored = node.node.image.delegation_tokens[made.token_id]
    assert (stored.owner, stored.requester, stored.renewers) == (ALICE, ALICE, ("User:bob",))
    assert len(made.token_id) == 22 and len(made.hmac) == 64
    assert stored.max_ms - stored.issued_ms == 604_800_000 and stored.expires_ms - stored.issued_ms == 86_400_000


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_token_for_another_user_needs_create_tokens_on_that_user(node: Guarded, listener: str) -> None:
    refused = node.ask(creating("bob"), listener=listener)
    assert (refused.error_code, refused.principal_name, refused.hmac) == (NOT_AUTHORIZED, "bob", b"")
    node.allow(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")
    made = node.ask(creating("bob"), listener=listener)
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "alice")
    assert node.ask(creating("carol"), listener=listener).error_code == NOT_AUTHORIZED
    assert node.ask(creating("carol"), principal=ADMIN, listener=listener).error_code == 0


@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_without_a_login_and_with_a_token_there_is_no_token(node: Guarded, listener: str) -> None:
    assert node.ask(creating(), principal="User:ANONYMOUS", listener=listener).error_code == NOT_ALLOWED
    for owner in (None, "bob"):
        assert node.ask(creating(owner), listener=listener, by_delegation_token=True).error_code == NOT_ALLOWED


def test_a_forwarded_principal_says_whether_it_has_logged_in_with_a_token() -> None:
    for by_token in (False, True):
        assert principal_text(principal_bytes(ALICE, by_token)) == (ALICE, by_token)


def test_an_envelope_that_comes_twice_creates_one_token(node: Guarded) -> None:
    before = set(node.node.image.delegation_tokens)
    client = Context(3, "client", HOST, "PLAINTEXT", object(), ALICE)
    token_id = "A" * 22
    envelope = envelope_of(RequestHeader(ApiKey.CREATE_DELEGATION_TOKEN, 3, 7, "broker"), creating(), client, token_id)
    answers = []
    for _ in range(2):
        sealed = node.ask(envelope, listener=CONTROLLER, principal=ADMIN)
        assert sealed.metadata_offset > 0
        raw = memoryview(bytes(sealed.response_data))
        answers.append(decode_response(ApiKey.CREATE_DELEGATION_TOKEN, 3, raw)[1])
    assert [made.token_id for made in answers] == [token_id] * 2
    assert answers[0] == answers[1]
    assert set(node.node.image.delegation_tokens) - before == {token_id}


def test_over_plaintext_and_without_a_secret_key_there_are_no_tokens() -> None:
    assert Guarded(delegation_token_secret_key="x").ask(creating(), principal=ADMIN).error_code == NOT_ALLOWED
    controllers = {"listener_security_protocol_map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT"}
    assert closed_node(**controllers).ask(creating()).error_code == NOT_ALLOWED
    off = closed_node(delegation_token_secret_key="")
    assert off.ask(creating()).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_no_log_has_the_secret_of_a_token(node: Guarded) -> None:
    node.log.clear()
    made = node.ask(creating())
    (line,) = [line for line in node.log if line.event == "operation"]
    assert dict(line.values)["api"] == "CreateDelegationToken"
    assert repr(bytes(made.hmac)) not in repr(node.log) and "hunter2" not in repr(node.log)
