"""The way of a request where there is an authorizer: to the rule of its API, and through its guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heirlog.context import Context
from heirlog.metadata.authorizer import Authorizer
from heirlog.node.authorization.call import Call
from heirlog.node.authorization.rules import RULES

if TYPE_CHECKING:
    from heirlog.node.node import Node
    from heirlog.node.router import Route


def serve(node: Node, authorizer: Authorizer, route: Route, request: Any, context: Context) -> Any:
    """The handler's answer, as far as the client may have it."""
    rule = RULES[node.listener(context.listener).role][route.key]
    return rule.guard(Call(node, authorizer, rule, route, request, context))
