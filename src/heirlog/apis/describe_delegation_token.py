"""DescribeDelegationToken (key 41): the tokens that a client may see, with their secrets (KIP-48).

v0 is no longer served. v1: brokers answer before throttling. v2: flexible. v3: who created the token. Answered from
this broker's own image. A client sees tokens that it owns or may renew; others with DESCRIBE on the token, or with
DESCRIBE_TOKENS on its owner.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.delegation_tokens import may_use_tokens
from heirlog.apis.common.ports import Describes
from heirlog.context import Context, Reply
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.config_def import token_secrets
from heirlog.metadata.delegation_tokens import DelegationToken
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from heirlog.security.delegation_token import TokenSecrets

Described = DescribeDelegationTokenResponse.DescribedDelegationToken
Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


def guard(
    call: Call[DescribeDelegationTokenRequest, DescribeDelegationTokenResponse],
) -> Reply[DescribeDelegationTokenResponse]:
    tokens = call.port.image.delegation_tokens

    def is_hidden(token_id: str) -> bool:
        return not (
            call.may_also(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id)
            or call.may_also(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, tokens[token_id].owner)
        )

    return call.handle_refusing(is_hidden)


def handle(
    node: Describes, request: DescribeDelegationTokenRequest, context: Context
) -> DescribeDelegationTokenResponse:
    if not may_use_tokens(node, context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secrets = token_secrets(node.config)
    if secrets is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    wanted = (
        None if request.owners is None else {f"{one.principal_type}:{one.principal_name}" for one in request.owners}
    )
    refuses, principal = context.refuses, context.principal
    found = [
        token
        for token in node.image.delegation_tokens.values()
        # never one look per owner and token: a client may name as many owners as it likes
        if (wanted is None or not wanted.isdisjoint((token.owner, *token.renewers)))
        and (token.is_of(principal) or refuses is None or not refuses(token.id))
    ]
    return DescribeDelegationTokenResponse(tokens=[_described(token, secrets) for token in found])


def _described(token: DelegationToken, secrets: TokenSecrets) -> Described:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":")
    renewers = [renewer.partition(":") for renewer in token.renewers]
    return Described(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=secrets.hmac_of(token.id),
        renewers=[Renewer(principal_type=kind, principal_name=name) for kind, _, name in renewers],
    )


API = Api(
    key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
    broker=Served(
        (1, 3),
        handle,
        also=(
            Need(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN),
            Need(AclOperation.DESCRIBE_TOKENS, ResourceType.USER),
        ),
        guard=guard,
    ),
    has_large_answer=True,
    is_audited=True,
    remarks="the answer has the secrets of the tokens, so it is in the audit log",
)
