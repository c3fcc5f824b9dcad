"""RenewDelegationToken (key 39): a token that would end soon ends later (KIP-48).

v0 is no longer served. v1: brokers answer before throttling. v2: flexible. The rules are in
`controller.delegation_tokens`; who may do it is the token's own matter, so no ACL is asked.
"""

from __future__ import annotations

from heirlog.apis.common.api import Api, Forwarded, Served
from heirlog.apis.common.delegation_tokens import ForwardsTokens, OnTokenController, may_use_tokens
from heirlog.context import Context, Reply
from heirlog.controller.delegation_tokens import renew_token
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def refused(request: RenewDelegationTokenRequest, code: ErrorCode) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=-1)


def handle_on_broker(
    node: ForwardsTokens, request: RenewDelegationTokenRequest, context: Context
) -> Reply[RenewDelegationTokenResponse]:
    if not may_use_tokens(node, context):
        return refused(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return node.forward(request, context, lambda code: refused(request, code))


def handle(
    node: OnTokenController, request: RenewDelegationTokenRequest, context: Context
) -> Reply[RenewDelegationTokenResponse]:
    if not may_use_tokens(node, context):
        return refused(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    controller = node.controller
    return controller.submit(
        lambda: renew_token(
            controller.image,
            controller.static,
            controller.token_secrets,
            request,
            context.principal,
            controller.env.wall_ms(),
        ),
        lambda code: refused(request, code),
    )


API = Api(
    key=ApiKey.RENEW_DELEGATION_TOKEN,
    broker=Forwarded((1, 2), handle_on_broker),
    controller=Served((1, 2), handle),
    refused=refused,
    is_change=True,
    remarks="by the token's owner and its renewers",
)
