"""ExpireDelegationToken through a node, and the sweep of tokens that ended by themselves."""

from __future__ import annotations

import pytest
from apis.guarded import ADMIN, CONTROLLER, Guarded
from apis.issuing_tokens import closed_node, token

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ExpireDelegationTokenRequest


@pytest.fixture(scope="module")
def one() -> Guarded:
    return closed_node(delegation_token_expiry_check_interval_ms="5000")


def expiring(hmac: bytes, period_ms: int = -1) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_a_token_is_removed_at_once_by_its_owner_or_a_renewer(node: Guarded, listener: str, version: int) -> None:
    for principal in ("User:alice", "User:bob"):
        made = token(node, renewers=("bob",))
        refused = node.ask(expiring(made.hmac), version, principal=ADMIN, listener=listener)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert node.ask(expiring(made.hmac), version, principal=principal, listener=listener).error_code == 0
        assert made.token_id not in node.node.image.delegation_tokens


def test_a_token_as_login_ends_no_token(node: Guarded) -> None:
    made = token(node)
    for listener in ("PLAINTEXT", CONTROLLER):
        answer = node.ask(expiring(made.hmac), listener=listener, by_delegation_token=True)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert made.token_id in node.node.image.delegation_tokens


def test_the_active_controller_sweeps_tokens_that_have_ended(node: Guarded) -> None:
    made = token(node)
    answer = node.ask(expiring(made.hmac, 1000))
    assert answer.error_code == 0
    assert node.node.image.delegation_tokens[made.token_id].expires_ms == answer.expiry_timestamp_ms
    kept = token(node)
    node.wait(lambda: made.token_id not in node.node.image.delegation_tokens)
    assert node.node.env.wall_ms() > answer.expiry_timestamp_ms
    assert kept.token_id in node.node.image.delegation_tokens


def test_a_new_process_sweeps_what_ended_meanwhile() -> None:
    """The interval is an hour: it is the activation that does it. What has not ended outlives the restart."""
    guarded = closed_node(delegation_token_expiry_time_ms="5000")
    ended, kept = token(guarded), token(guarded, "User:bob")
    assert guarded.ask(expiring(kept.hmac, 3_000_000), principal="User:bob").error_code == 0
    guarded.world.run_for(1000)
    guarded.cluster.kill("broker-1")
    guarded.world.run_for(6000)
    guarded.cluster.start("broker-1")
    guarded.wait(lambda: guarded.cluster.broker(1).node is not None and bool(guarded.node.image.brokers))
    guarded.wait(lambda: ended.token_id not in guarded.node.image.delegation_tokens)
    assert kept.token_id in guarded.node.image.delegation_tokens
