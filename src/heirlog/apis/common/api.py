"""The descriptor of one API: what a node must know to serve it.

    Api         the key; the answer that refuses; what holds on every listener
    Served      the API on one kind of listener: versions, permission, handler
    Forwarded   the same on a broker that sends the request on to the active controller (KIP-590)

A handler is `handle(port, request, context)`. It returns a `Reply`: the response, a `Pending` for one, or a sign that
there is no message. Authorization happens before it: a guard takes out of the request what the client must not touch,
has the handler answer the rest, and puts the refusals into that answer. Without an authorizer no guard runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias

from heirlog.apis.common.call import Call, Q, R
from heirlog.apis.common.call import Need as Need
from heirlog.context import Context, Reply
from heirlog.controller.error_messages import sentence
from heirlog.metadata.acls import AclOperation, ResourceType
from heirlog.metadata.authorizer import Authorizer
from heirlog.protocol.api import APIS, ApiKey, response_class
from heirlog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from heirlog.apis.common.ports import Ports

Guard: TypeAlias = Callable[[Call[Q, R]], Reply[R]]
Versions: TypeAlias = tuple[int, int]


class Role(Enum):
    """The kind of a listener."""

    BROKER = "broker"
    CONTROLLER = "controller"


NODES_ONLY: Final = (Need(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER),)
"""What brokers and controllers send each other."""
DESCRIBE_CLUSTER: Final = (Need(AclOperation.DESCRIBE, ResourceType.CLUSTER),)
ALTER_CLUSTER: Final = (Need(AclOperation.ALTER, ResourceType.CLUSTER),)


@dataclass(frozen=True, slots=True)
class Served(Generic[Q, R]):
    versions: Versions
    """First and last version that are served."""
    handle: Callable[[Ports, Q, Context], Reply[R]]
    needs: tuple[Need, ...] = ()
    """Of those on one type of resource, any one is enough."""
    also: tuple[Need, ...] = ()
    """Needed in certain cases only; the guard says which."""
    guard: Guard[Q, R] | None = None
    """None: the cluster must allow one of `needs`; without any, every client is served."""
    advertised: Versions | None = None
    """What ApiVersions shows; None: those of the served versions that are Kafka's."""
    last_is_unstable: bool = False
    """The last version is served only with `unstable.api.versions.enable`, as on Apache Kafka."""


@dataclass(frozen=True, slots=True)
class Forwarded(Generic[Q, R]):
    """The active controller checks the permission of the client, unless the broker has work of its own."""

    versions: Versions
    handle: Callable[[Ports, Q, Context], Reply[R]] | None = None
    """Where the broker does part of the work itself; None: `forward`."""
    needs: tuple[Need, ...] = ()
    also: tuple[Need, ...] = ()
    guard: Guard[Q, R] | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """How much one request may ask for, or its answer may hold. The code that enforces it owns the number."""

    most: int | str
    """The number, or the name of the configuration that has it."""
    unit: str
    """What is counted, in the plural: partitions, metadata records."""
    error: ErrorCode | None = None
    """The answer to what is above the limit. None: the answer is shorter than the request asks."""

    def __str__(self) -> str:
        most = f"`{self.most}`" if isinstance(self.most, str) else str(self.most)
        return f"at most {most} {self.unit}" + ("" if self.error is None else f", then {self.error.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api(Generic[Q, R]):
    key: ApiKey
    broker: Served[Q, R] | Forwarded[Q, R] | None = None
    controller: Served[Q, R] | None = None
    refused: Callable[[Q, ErrorCode], R] | None = None
    """The answer that says that nothing was done: the client must not, no controller answered in time, or this
    node is not the active controller. None: the error code of the whole answer says it."""
    is_change: bool = False
    """A client changes metadata by it: the answer waits until every broker knows the change (`read_your_writes`)."""
    is_audited: bool = False
    """Each request is a line of the audit log (`node.audit`), as every change is."""
    has_large_answer: bool = False
    """The answer may be far larger than the request: a connection may be ahead by few of them (`node.connection`)."""
    keeps_nothing: bool = False
    """Of the request nothing is kept while its answer waits, and the answer is small: it costs next to nothing, however
    large the request was (`node.connection`)."""
    is_repeated: bool = False
    """Clients send the same request again and again: a connection decodes it once (`node.wire`)."""
    has_no_quota: bool = False
    """Nodes send it each other, so that no quota of clients counts it (`node.client_quotas`). An API that needs nothing
    but what nodes may do has none in any case."""
    limits: tuple[Limit, ...] = ()
    """Of one request; docs/reference/limits.md lists them with the other bounds."""
    remarks: str = ""
    """For the table of docs/compatibility.md, in Markdown."""

    @property
    def can_refuse(self) -> bool:
        """Whether there is an answer by which a request is refused as a whole."""
        return self.refused is not None or "error_code" in response_class(self.key).FIELDS

    def refusal(self, request: Q, code: ErrorCode) -> R:
        """The answer that says that nothing was done."""
        if self.refused is not None:
            return self.refused(request, code)
        answer: Any = response_class(self.key)()
        answer.error_code = code
        if "error_message" in answer.FIELDS:
            answer.error_message = sentence(code)
        refusal: R = answer
        return refusal

    def guarded(
        self,
        served: Served[Q, R] | Forwarded[Q, R],
        handle: Callable[[Ports, Q, Context], Reply[R]],
        port: Ports,
        authorizer: Authorizer,
        request: Q,
        context: Context,
    ) -> Reply[R]:
        """The handler's answer, as far as the client may have it."""
        call = Call(self.key, served, handle, self.refusal, port, authorizer, request, context)
        if served.guard is not None:
            return served.guard(call)
        if not served.needs or call.may(ResourceType.CLUSTER):
            return call.handle()
        return call.refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


class Entry(NamedTuple):
    """What a node must know of an API on one kind of listener before the first request comes: no file is imported.

    `apis._index` has one for each, generated from the descriptors.
    """

    module: str
    versions: Versions
    advertised: Versions | None
    is_forwarded: bool
    """Brokers send it to controllers."""
    has_handler: bool
    """False: the broker only forwards it."""
    is_change: bool
    has_large_answer: bool
    keeps_nothing: bool
    is_repeated: bool
    has_no_quota: bool
    is_audited: bool
    last_is_unstable: bool
    """A node serves the last version only with `unstable.api.versions.enable`."""


def entry(api: Api[Any, Any], role: Role, module: str) -> Entry | None:
    """None: listeners of this kind do not serve it."""
    served = api.broker if role is Role.BROKER else api.controller
    if served is None:
        return None
    first, last = served.versions
    kafka_last = min(last, APIS[api.key].kafka_max_version)
    advertised = served.advertised if isinstance(served, Served) else None
    if advertised is None and kafka_last >= first:
        advertised = first, kafka_last
    return Entry(
        module,
        (first, last),
        advertised,
        is_forwarded=isinstance(api.broker, Forwarded),
        has_handler=served.handle is not None,
        is_change=api.is_change and role is Role.CONTROLLER,
        has_large_answer=api.has_large_answer,
        keeps_nothing=api.keeps_nothing,
        is_repeated=api.is_repeated,
        has_no_quota=api.has_no_quota or served.needs == NODES_ONLY,
        is_audited=served.handle is not None and (api.is_audited or (api.is_change and role is Role.CONTROLLER)),
        last_is_unstable=isinstance(served, Served) and served.last_is_unstable,
    )
