"""What the APIs of delegation tokens share: who may use them at all."""

from __future__ import annotations

from typing import Protocol

from heirlog.apis.common.ports import ChangesMetadata, Forwards, HasConfig, OnController
from heirlog.context import ANONYMOUS, Context
from heirlog.security.delegation_token import TokenSecrets


class TokenController(ChangesMetadata, Protocol):
    @property
    def token_secrets(self) -> TokenSecrets | None:
        """None: delegation tokens are off."""


class OnTokenController(OnController[TokenController], HasConfig, Protocol):
    pass


class ForwardsTokens(Forwards, HasConfig, Protocol):
    pass


def may_use_tokens(node: HasConfig, context: Context) -> bool:
    """Not who has logged in with a token, and not over a connection that protects nothing.

    On a controller the connection is the one of the forwarding broker.
    """
    if context.by_delegation_token:
        return False
    protocol = node.config.security(context.listener).protocol
    return protocol != "PLAINTEXT" and not (protocol == "SSL" and context.principal == ANONYMOUS)
