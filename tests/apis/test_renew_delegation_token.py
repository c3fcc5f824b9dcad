"""RenewDelegationToken through a node: its owner and its renewers, whatever the ACLs say."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, CONTROLLER, Guarded
from apis.issuing_tokens import closed_node, token

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import RenewDelegationTokenRequest


@pytest.fixture(scope="module")
def one() -> Guarded:
    return closed_node()


def renewing(hmac: bytes, period_ms: int = -1) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_the_owner_and_its_renewers_may_and_not_even_super_users_else(
    node: Guarded, listener: str, version: int
) -> None:
    made = token(node, renewers=("bob",))
    for principal in ("User:alice", "User:bob"):
        node.world.run_for(10)
        answer = node.ask(renewing(made.hmac, 60_000), version, principal=principal, listener=listener)
        assert answer.error_code == 0
        stored = node.node.image.delegation_tokens[made.token_id]
        assert answer.expiry_timestamp_ms == stored.expires_ms < made.expiry_timestamp_ms
    for principal in ("User:carol", ADMIN):
        answer = node.ask(renewing(made.hmac), version, principal=principal, listener=listener)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


def test_an_unknown_token_a_missing_login_and_a_token_as_login_are_refused(node: Guarded) -> None:
    made = token(node)
    assert node.ask(renewing(b"x" * 64)).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for listener in ("PLAINTEXT", CONTROLLER):
        answer = node.ask(renewing(made.hmac), listener=listener, by_delegation_token=True)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (not_allowed, -1)
        assert node.ask(renewing(made.hmac), principal="User:ANONYMOUS").error_code == not_allowed
