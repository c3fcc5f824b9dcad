"""Delegation tokens: who gets one, who may renew and end it, and which are swept.

    create   ends after `delegation.token.expiry.time.ms`, at the latest after the maximum lifetime
    renew    by the owner or a renewer, while it has not ended: ends that much later, never after its maximum
    expire   by the same: at once (it is removed), or at an earlier or later time below its maximum
    sweep    every `delegation.token.expiry.check.interval.ms`: tokens that have ended are removed

Renewing and expiring name a token by its HMAC: who has only seen its id can do neither. Without
`delegation.token.secret.key` the feature is off. Bounds that Kafka does not have: a token is in the memory of every
node.

Source: KIP-48, KIP-373; Kafka's DelegationTokenControlManager, whose order of checks this is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from heirlog.controller.controller_result import ControllerResult, answer
from heirlog.env import Random
from heirlog.metadata.as_records import delegation_token_record
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.metadata.image import Image
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from heirlog.protocol.records import RemoveDelegationTokenRecord
from heirlog.protocol.types import uuid_text
from heirlog.security.delegation_token import TokenSecrets
from heirlog.security.scram import USER_NAME_MAX

USER: Final = "User"
RENEWERS_MAX: Final = 100
TOKENS_OF_OWNER_MAX: Final = 1000
SWEPT_MAX: Final = 1000
"""Tokens that one pass removes."""
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}")
_TIME_MAX: Final = 2**63 - 1
R = TypeVar("R", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


class _Refused(Exception):
    """The answers have a code and no room for a sentence."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code


def new_token_id(random: Random) -> str:
    """As Kafka's: 22 characters that do not begin with a dash, which commands would take for an option."""
    while (text := uuid_text(random.randbytes(16))).startswith("-"):
        pass
    return text


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    """Of the token that is asked for."""
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type or USER}:{request.owner_principal_name}"


def refused_creation(
    request: CreateDelegationTokenRequest, code: ErrorCode, requester: str = ""
) -> CreateDelegationTokenResponse:
    """With whom it was for, as on Kafka; requester: "" where that is unknown."""
    owner_type, _, owner = owner_of(request, requester).partition(":")
    requester_type, _, name = requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=name,
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )


def create_token(
    image: Image,
    static: StaticConfig,
    secrets: TokenSecrets | None,
    request: CreateDelegationTokenRequest,
    requester: str,
    token_id: str,
    now_ms: int,
) -> ControllerResult[CreateDelegationTokenResponse]:
    """token_id: never used before, or the request is a repeat: then the token is written again as it is."""
    owner = owner_of(request, requester)
    renewers = tuple(f"{one.principal_type}:{one.principal_name}" for one in request.renewers)
    known = image.delegation_tokens.get(token_id)
    if known is not None and secrets is not None and (known.owner, known.requester) == (owner, requester):
        return _created(known, secrets, request)
    try:
        if secrets is None:
            raise _Refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        # brokers choose ids: none may take the place of another's token
        if known is not None or not _ID.fullmatch(token_id):
            raise _Refused(ErrorCode.INVALID_REQUEST)
        _check_new(image, owner, renewers)
    except _Refused as error:
        return answer(refused_creation(request, error.code, requester))
    lifetime_ms = static.int("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = _later(now_ms, lifetime_ms)
    expires_ms = min(max_ms, _later(now_ms, static.int("delegation.token.expiry.time.ms")))
    token = DelegationToken(token_id, owner, requester, renewers, now_ms, max_ms, expires_ms)
    return _created(token, secrets, request)


def _created(
    token: DelegationToken, secrets: TokenSecrets, request: CreateDelegationTokenRequest
) -> ControllerResult[CreateDelegationTokenResponse]:
    response = refused_creation(request, ErrorCode.NONE, token.requester)
    response.issue_timestamp_ms, response.max_timestamp_ms = token.issued_ms, token.max_ms
    response.expiry_timestamp_ms = token.expires_ms
    response.token_id, response.hmac = token.id, secrets.hmac_of(token.id)
    return ControllerResult(lambda base_offset: response, [delegation_token_record(token)])


def _check_new(image: Image, owner: str, renewers: Sequence[str]) -> None:
    """Raises _Refused."""
    for principal in (owner, *renewers):
        kind, _, name = principal.partition(":")
        if kind != USER:
            raise _Refused(ErrorCode.INVALID_PRINCIPAL_TYPE)
        if not 0 < len(name) <= USER_NAME_MAX:
            raise _Refused(ErrorCode.INVALID_REQUEST)
    if len(renewers) > RENEWERS_MAX:
        raise _Refused(ErrorCode.POLICY_VIOLATION)
    if sum(token.owner == owner for token in image.delegation_tokens.values()) >= TOKENS_OF_OWNER_MAX:
        raise _Refused(ErrorCode.POLICY_VIOLATION)


def renew_token(
    image: Image,
    static: StaticConfig,
    secrets: TokenSecrets | None,
    request: RenewDelegationTokenRequest,
    principal: str,
    now_ms: int,
) -> ControllerResult[RenewDelegationTokenResponse]:
    try:
        token = _found(image, secrets, bytes(request.hmac))
        _check_alive(token, now_ms)
        _check_renewer(token, principal)
    except _Refused as error:
        return answer(RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1))
    period_ms = static.int("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    return _ends(token, _later(now_ms, period_ms), RenewDelegationTokenResponse())


def expire_token(
    image: Image,
    secrets: TokenSecrets | None,
    request: ExpireDelegationTokenRequest,
    principal: str,
    now_ms: int,
) -> ControllerResult[ExpireDelegationTokenResponse]:
    try:
        token = _found(image, secrets, bytes(request.hmac))
        _check_renewer(token, principal)
        if request.expiry_time_period_ms < 0:
            removed = ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms)
            return ControllerResult(lambda base_offset: removed, [RemoveDelegationTokenRecord(token_id=token.id)])
        _check_alive(token, now_ms)
    except _Refused as error:
        return answer(ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1))
    return _ends(token, _later(now_ms, request.expiry_time_period_ms), ExpireDelegationTokenResponse())


def swept(image: Image, now_ms: int) -> list[Any]:
    """The records that remove tokens which have ended, `SWEPT_MAX` at most."""
    ended = (token for token in image.delegation_tokens.values() if token.ends_ms < now_ms)
    return [RemoveDelegationTokenRecord(token_id=token.id) for token, _ in zip(ended, range(SWEPT_MAX), strict=False)]


def _found(image: Image, secrets: TokenSecrets | None, hmac: bytes) -> DelegationToken:
    """Raises _Refused."""
    if secrets is None:
        raise _Refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token_id = secrets.id_of(hmac, image.delegation_tokens)
    if token_id is None:
        raise _Refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return image.delegation_tokens[token_id]


def _check_alive(token: DelegationToken, now_ms: int) -> None:
    if token.ends_ms < now_ms:
        raise _Refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_renewer(token: DelegationToken, principal: str) -> None:
    if not token.is_of(principal):
        raise _Refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _ends(token: DelegationToken, wanted_ms: int, response: R) -> ControllerResult[R]:
    expires_ms = min(token.max_ms, wanted_ms)
    response.expiry_timestamp_ms = expires_ms
    return ControllerResult(
        lambda base_offset: response, [delegation_token_record(replace(token, expires_ms=expires_ms))]
    )


def _later(now_ms: int, period_ms: int) -> int:
    return min(_TIME_MAX, now_ms + period_ms)
