"""Delegation tokens: what a client asks of the cluster to create, renew, end and list them (KIP-48).

The client must have logged in, and not with a token. The HMAC of a token is its password: keep it out of logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from heirlog.client.admin import to_controller
from heirlog.client.call import Ask, Conversation
from heirlog.protocol.errors import ErrorCode, KafkaError, error_code
from heirlog.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

SENTENCES: Final = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "they are off: set delegation.token.secret.key in "
    "server.properties of every node, and restart them",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "there is no such delegation token",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only the token's owner and its renewers may do this",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in with a password or a certificate over a listener that is "
    "not PLAINTEXT (the controllers' listener too): not without a login, and not with a delegation token",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "a token for another user needs CREATE_TOKENS on that user",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the delegation token has ended; create another one",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owners and renewers are users: User:name",
}


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """Principals as `Type:Name`, times in milliseconds since 1970."""

    id: str
    hmac: bytes = field(repr=False)
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int


def create_delegation_token(
    renewers: Sequence[str] = (), owner: str | None = None, max_lifetime_ms: int = -1
) -> Conversation[IssuedToken]:
    """owner: None: who has logged in. max_lifetime_ms: not positive: the cluster's maximum. Raises KafkaError."""
    kind, _, name = (owner or "").partition(":")
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind or None,
        owner_principal_name=name or None,
        renewers=[
            CreateDelegationTokenRequest.CreatableRenewers(principal_type=of_type, principal_name=renewer)
            for of_type, _, renewer in (text.partition(":") for text in renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )
    made: CreateDelegationTokenResponse = yield from to_controller(request, lambda answer: [answer.error_code])
    _check(made.error_code)
    return IssuedToken(
        made.token_id,
        bytes(made.hmac),
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        tuple(renewers),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )


def renew_delegation_token(hmac: bytes, period_ms: int = -1) -> Conversation[int]:
    """When it ends now. period_ms: not positive: the cluster's. Raises KafkaError."""
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    response: RenewDelegationTokenResponse = yield from to_controller(request, lambda answer: [answer.error_code])
    _check(response.error_code)
    return response.expiry_timestamp_ms


def expire_delegation_token(hmac: bytes, period_ms: int = -1) -> Conversation[int]:
    """When it ends now. period_ms: below 0: at once. Raises KafkaError."""
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response: ExpireDelegationTokenResponse = yield from to_controller(request, lambda answer: [answer.error_code])
    _check(response.error_code)
    return response.expiry_timestamp_ms


def describe_delegation_tokens(owners: Sequence[str] | None = None) -> Conversation[list[IssuedToken]]:
    """Those that this client may see, of these owners and renewers, or all. Raises KafkaError."""
    asked = None
    if owners is not None:
        asked = [
            DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, _, name in (owner.partition(":") for owner in owners)
        ]
    found: DescribeDelegationTokenResponse = yield Ask(DescribeDelegationTokenRequest(owners=asked))
    _check(found.error_code)
    return [
        IssuedToken(
            one.token_id,
            bytes(one.hmac),
            f"{one.principal_type}:{one.principal_name}",
            f"{one.token_requester_principal_type}:{one.token_requester_principal_name}",
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in one.renewers),
            one.issue_timestamp,
            one.expiry_timestamp,
            one.max_timestamp,
        )
        for one in found.tokens
    ]


def _check(code: int) -> None:
    """Raises KafkaError."""
    if code != ErrorCode.NONE:
        found = error_code(code)
        raise KafkaError(found, SENTENCES.get(found, found.name))
