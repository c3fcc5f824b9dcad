"""One request on its way to its handler, with the questions that a guard may ask about its client.

A request is never changed, for it may be the sender's own object (`env.py`): `without` makes a twin. Answers are the
handler's own, made for this request, and may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from heirlog.context import CLOSE, NO_ANSWER, Context
from heirlog.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from heirlog.metadata.authorizer import Authorizer
from heirlog.node.address import kafka_host
from heirlog.pending import Pending
from heirlog.protocol.types import Uuid

if TYPE_CHECKING:
    from heirlog.node.node import Node
    from heirlog.node.router import Route

T = TypeVar("T")
Guard: TypeAlias = Callable[["Call"], Any]


class Need(NamedTuple):
    operation: Operation
    resource_type: ResourceType


@dataclass(frozen=True, slots=True)
class Rule:
    """What an API asks for.

    needs: of those on one type of resource, any one is enough. also: asked for besides, in a certain case; the guard
    says which.
    """

    guard: Guard
    needs: tuple[Need, ...] = ()
    also: tuple[Need, ...] = ()


class Call:
    """`request` is the whole one; `handle` may be given a smaller one."""

    __slots__ = ("_authorizer", "_host", "_rule", "context", "node", "request", "route")

    def __init__(
        self, node: Node, authorizer: Authorizer, rule: Rule, route: Route, request: Any, context: Context
    ) -> None:
        self.node = node
        self.route = route
        self.request = request
        self.context = context
        self._authorizer = authorizer
        self._rule = rule
        self._host = kafka_host(context.client_host)

    def may(self, resource_type: ResourceType, name: str = CLUSTER_NAME, *, is_denial: bool = True) -> bool:
        """Whether the client may do with this resource what the API is for.

        is_denial: a no refuses something, and is told in the log; else another way is left.
        """
        needs = [need for need in self._rule.needs if need.resource_type is resource_type]
        if any(self._allowed(need.operation, resource_type, name) for need in needs):
            return True
        if is_denial:
            self._tell(needs[0].operation, resource_type, name)
        return False

    def may_also(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether it may do besides what `Rule.also` says."""
        assert Need(operation, resource_type) in self._rule.also, "the table says what is asked for"
        return self._allowed(operation, resource_type, name)

    def may_any(self, resource_type: ResourceType) -> bool:
        """Whether there is some resource of this type of which `may` would be true."""
        return any(
            self._authorizer.may_any(self.context.principal, self._host, need.operation, resource_type)
            for need in self._rule.needs
            if need.resource_type is resource_type
        )

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Everything that the client may do with it, as a bit field (KIP-430)."""
        return self._authorizer.operations(self.context.principal, self._host, resource_type, name)

    def handle(self, request: Any = None, context: Context | None = None) -> Any:
        """The handler's answer."""
        return self.route.handle(self.node, request or self.request, context or self.context)

    def handle_refusing(self, refuses: Callable[[str], bool]) -> Any:
        """The handler's answer; topics that `refuses` says yes to are refused there."""
        return self.handle(context=replace(self.context, refuses=refuses))

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.node.image.topics.get(Uuid(topic_id))
        return None if topic is None else topic.name

    def _allowed(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return self._authorizer.may(self.context.principal, self._host, operation, resource_type, name)

    def _tell(self, operation: Operation, resource_type: ResourceType, name: str) -> None:
        self.node.complain(
            "info",
            "authorization-denied",
            principal=self.context.principal,
            host=self._host,
            operation=operation.name,
            resource_type=resource_type.name,
            resource=name,
        )


def parted(items: Iterable[T], is_left: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Those that are left to the handler, and those that are denied."""
    left: list[T] = []
    denied: list[T] = []
    for item in items:
        (left if is_left(item) else denied).append(item)
    return left, denied


def changed(answer: Any, change: Callable[[Any], None]) -> Any:
    """The answer, or `Pending` for one, after `change` was made to it."""
    if not isinstance(answer, Pending):
        if answer is not CLOSE and answer is not NO_ANSWER:
            change(answer)
        return answer
    later: Pending[Any] = Pending()
    later.on_abandon = answer.abandon

    def answered(response: Any) -> None:
        if response is not CLOSE and response is not NO_ANSWER:
            change(response)
        later.complete(response)

    answer.then(answered)
    return later


def without(request: T, **fields: Any) -> T:
    """A twin of a request with other values in these fields."""
    twin = type(request)()
    for name in request.FIELDS:  # type: ignore[attr-defined]  # every request is a Struct
        setattr(twin, name, fields[name] if name in fields else getattr(request, name))
    return twin
