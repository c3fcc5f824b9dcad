"""One request on its way to its handler, with the questions that a guard may ask about its client.

A request is never changed, for it may be the sender's own object (`env.py`): `without` makes a twin. Answers are the
handler's own, made for this request, and may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from heirlog.context import Context, Reply, Sentinel
from heirlog.metadata.acls import CLUSTER_NAME, AclOperation, ResourceType
from heirlog.metadata.address import kafka_host
from heirlog.metadata.authorizer import Authorizer
from heirlog.pending import Pending
from heirlog.protocol.api import ApiKey, response_class
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.primitives import Message
from heirlog.protocol.types import Uuid

if TYPE_CHECKING:
    from heirlog.apis.common.ports import Ports

T = TypeVar("T")
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
DENIED: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    operation: AclOperation
    resource_type: ResourceType


class Permission(Protocol):
    """What a descriptor says of one kind of listener."""

    @property
    def needs(self) -> tuple[Need, ...]: ...

    @property
    def also(self) -> tuple[Need, ...]: ...


class Call(Generic[Q, R]):
    """`request` is the whole one; `handle` may get a smaller one."""

    __slots__ = (
        "_authorizer",
        "_handle",
        "_host",
        "_key",
        "_permission",
        "_refusal",
        "context",
        "port",
        "request",
    )

    def __init__(
        self,
        key: ApiKey,
        permission: Permission,
        handle: Callable[[Ports, Q, Context], Reply[R]],
        refusal: Callable[[Q, ErrorCode], R],
        port: Ports,
        authorizer: Authorizer,
        request: Q,
        context: Context,
    ) -> None:
        self.port = port
        self.request = request
        self.context = context
        self._key = key
        self._permission = permission
        self._handle = handle
        self._refusal = refusal
        self._authorizer = authorizer
        self._host = kafka_host(context.client_host)

    # -- what a guard asks --------------------------------------------------------------------------------------

    def may(self, resource_type: ResourceType, name: str = CLUSTER_NAME, *, is_denial: bool = True) -> bool:
        """Whether the client may use the API on this resource.

        is_denial: a no refuses something and is logged; False where the client still gets an answer.
        """
        needs = [need for need in self._permission.needs if need.resource_type is resource_type]
        if any(self._allowed(need.operation, resource_type, name) for need in needs):
            return True
        if is_denial:
            self.port.log_denied(self.context, needs[0].operation, resource_type, name)
        return False

    def may_also(self, operation: AclOperation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether the client has what `also` of the descriptor names."""
        assert Need(operation, resource_type) in self._permission.also, "the descriptor names it"
        return self._allowed(operation, resource_type, name)

    def may_any(self, resource_type: ResourceType) -> bool:
        """Whether there is any resource of this type for which `may` would be true."""
        return any(
            self._authorizer.may_any(self.context.principal, self._host, need.operation, resource_type)
            for need in self._permission.needs
            if need.resource_type is resource_type
        )

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Everything that the client may do with it, as a bit field (KIP-430)."""
        return self._authorizer.operations(self.context.principal, self._host, resource_type, name)

    def topic_name(self, topic_id: bytes) -> str | None:
        topic = self.port.image.topics.get(Uuid(topic_id))
        return None if topic is None else topic.name

    def may_topic(self, name: str, topic_id: bytes, *, by_id: bool, is_denial: bool = True) -> bool:
        """True also for an unknown id: the handler says that it is unknown."""
        known = self.topic_name(topic_id) if by_id else name
        return known is None or self.may(ResourceType.TOPIC, known, is_denial=is_denial)

    # -- what a guard answers -----------------------------------------------------------------------------------

    def handle(self, request: Q | None = None, context: Context | None = None) -> Reply[R]:
        """The handler's answer."""
        return self._handle(self.port, request or self.request, context or self.context)

    def handle_refusing(self, refuses: Callable[[str], bool]) -> Reply[R]:
        """The handler's answer; the handler refuses the topics for which `refuses` is true."""
        return self.handle(context=replace(self.context, refuses=refuses))

    def refusal(self, code: ErrorCode) -> R:
        """The answer that says that nothing was done."""
        return self._refusal(self.request, code)

    def empty(self) -> R:
        """An answer for guards to fill."""
        return cast(R, response_class(self._key)())

    def _allowed(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return self._authorizer.may(self.context.principal, self._host, operation, resource_type, name)


def parted(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """What the handler answers, and what is denied."""
    allowed: list[T] = []
    denied: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else denied).append(item)
    return allowed, denied


def changed(answer: Reply[R], change: Callable[[R], None]) -> Reply[R]:
    """The answer, or `Pending` for one, after `change` was made to it."""
    if isinstance(answer, Sentinel):
        return answer
    if not isinstance(answer, Pending):
        change(answer)
        return answer
    later: Pending[R] = Pending(answer.abandon)

    def answered(response: R) -> None:
        if not isinstance(response, Sentinel):
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


def split(
    call: Call[Q, R],
    asked_in: str,
    answered_in: str,
    allowed: list[Any],
    denied: list[Any],
    refused: Callable[[Any], Any],
) -> Reply[R]:
    """The handler's answer to the request without what is denied, followed by the refusals of what is denied.

    asked_in, answered_in: the lists of the request and of the answer. refused: the answer for one denied element.
    """
    if not denied:
        return call.handle()
    answer: Reply[R] = call.handle(without(call.request, **{asked_in: allowed})) if allowed else call.empty()
    return changed(answer, lambda response: getattr(response, answered_in).extend(map(refused, denied)))
