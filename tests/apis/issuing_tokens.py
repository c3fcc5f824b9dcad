"""A node whose listeners are SSL, with delegation tokens: clients say who they are, as everywhere in these tests."""

from __future__ import annotations

from typing import Any

from apis.guarded import ALICE, Guarded

from heirlog.protocol.messages import CreateDelegationTokenRequest

Renewer = CreateDelegationTokenRequest.CreatableRenewers


def closed_node(**more: str) -> Guarded:
    given = {
        "listener_security_protocol_map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "delegation_token_secret_key": "hunter2",
        "super_users": "User:ANONYMOUS;User:admin",
    }
    return Guarded(**(given | more))


def creating(owner: str | None = None, renewers: tuple[str, ...] = ()) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User",
        owner_principal_name=owner,
        renewers=[Renewer(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=-1,
    )


def token(node: Guarded, principal: str = ALICE, renewers: tuple[str, ...] = ()) -> Any:
    made = node.ask(creating(renewers=renewers), principal=principal)
    assert made.error_code == 0, made
    return made
