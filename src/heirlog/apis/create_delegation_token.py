"""CreateDelegationToken (key 38): a token with which its bearer logs in as the token's owner (KIP-48).

v0 is no longer served. v1: brokers answer before throttling. v2: flexible. v3: an owner other than the client, with
CREATE_TOKENS on that user (KIP-373). The rules are in `controller.delegation_tokens`.
"""

from __future__ import annotations

from functools import partial

from heirlog.apis.common.api import Api, Forwarded, Limit, Need, Served
from heirlog.apis.common.call import Call
from heirlog.apis.common.delegation_tokens import ForwardsTokens, OnTokenController, may_use_tokens
from heirlog.context import Context, Reply
from heirlog.controller.delegation_tokens import (
    RENEWERS_MAX,
    TOKENS_OF_OWNER_MAX,
    create_token,
    new_token_id,
    owner_of,
    refused_creation,
)
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse


def guard(
    call: Call[CreateDelegationTokenRequest, CreateDelegationTokenResponse],
) -> Reply[CreateDelegationTokenResponse]:
    context = call.context
    owner = owner_of(call.request, context.principal)
    is_own = owner == context.principal or not may_use_tokens(call.port, context)
    if is_own or call.may_also(AclOperation.CREATE_TOKENS, ResourceType.USER, owner):
        return call.handle()
    return refused_creation(call.request, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, context.principal)


def handle_on_broker(
    node: ForwardsTokens, request: CreateDelegationTokenRequest, context: Context
) -> Reply[CreateDelegationTokenResponse]:
    refused = partial(refused_creation, request, requester=context.principal)
    if not may_use_tokens(node, context):
        return refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return node.forward(request, context, refused)


def handle(
    node: OnTokenController, request: CreateDelegationTokenRequest, context: Context
) -> Reply[CreateDelegationTokenResponse]:
    controller, principal = node.controller, context.principal
    refused = partial(refused_creation, request, requester=principal)
    if not may_use_tokens(node, context):
        return refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    token_id = context.new_token_id or new_token_id(controller.env.random)
    return controller.submit(
        lambda: create_token(
            controller.image,
            controller.static,
            controller.token_secrets,
            request,
            principal,
            token_id,
            controller.env.wall_ms(),
        ),
        refused,
    )


API = Api(
    key=ApiKey.CREATE_DELEGATION_TOKEN,
    broker=Forwarded((1, 3), handle_on_broker),
    controller=Served((1, 3), handle, also=(Need(AclOperation.CREATE_TOKENS, ResourceType.USER),), guard=guard),
    refused=refused_creation,
    is_change=True,
    limits=(
        Limit(RENEWERS_MAX, "renewers", ErrorCode.POLICY_VIOLATION),
        Limit(TOKENS_OF_OWNER_MAX, "tokens of one owner", ErrorCode.POLICY_VIOLATION),
    ),
    remarks="owners are users, of any other type INVALID_PRINCIPAL_TYPE",
)
