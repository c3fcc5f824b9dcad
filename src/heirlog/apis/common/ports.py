"""What handlers use of a node: the type of a handler's first parameter names it, and nothing else is available.

`Ports` is all of it together, which a node offers; the type checker compares the two. A protocol that one API alone
needs is in that API's file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from heirlog.broker.broker import Broker
    from heirlog.broker.groups.coordinator import GroupCoordinator
    from heirlog.broker.share_coordinator.coordinator import ShareCoordinator
    from heirlog.broker.transactions.coordinator import TransactionCoordinator
    from heirlog.context import Context, Reply
    from heirlog.controller.controller import Controller
    from heirlog.controller.controller_result import ControllerResult
    from heirlog.env import Env
    from heirlog.log_levels import LogLevels
    from heirlog.metadata.acls import AclOperation, ResourceType
    from heirlog.metadata.authorizer import Authorizer
    from heirlog.metadata.config_def import StaticConfig
    from heirlog.metadata.image import Image
    from heirlog.metadata.state import BrokerRegistration
    from heirlog.pending import Pending
    from heirlog.protocol.errors import ErrorCode
    from heirlog.protocol.messages import ApiVersionsResponse
    from heirlog.protocol.primitives import Message
    from heirlog.protocol.types import Endpoint
    from heirlog.raft.quorum import Quorum

R = TypeVar("R")
Part = TypeVar("Part", covariant=True)


class HasImage(Protocol):
    @property
    def image(self) -> Image:
        """Committed metadata as far as this node has applied it."""


class HasConfig(Protocol):
    @property
    def config(self) -> StaticConfig:
        """server.properties of this node."""


class Describes(HasImage, HasConfig, Protocol):
    """For answers from the image and the configuration of this node."""


class ConfiguresItself(Describes, Protocol):
    def reason_against_stores(self, changes: Mapping[str, str | None]) -> str | None:
        """Why this node cannot serve its listeners with its configurations changed like this; None: it can."""


class OnBroker(Protocol[Part]):
    @property
    def broker(self) -> Part:
        """The broker role of this node."""


class OnController(Protocol[Part]):
    @property
    def controller(self) -> Part:
        """The controller role of this node."""


class OnQuorum(Protocol[Part]):
    @property
    def quorum(self) -> Part:
        """The metadata quorum as this node takes part in it."""


class CoordinatesGroups(Protocol):
    @property
    def groups(self) -> GroupCoordinator: ...


class CoordinatesTransactions(Protocol):
    @property
    def transactions(self) -> TransactionCoordinator: ...


class CoordinatesShares(Protocol):
    @property
    def share_coordinator(self) -> ShareCoordinator: ...


class Coordinates(CoordinatesGroups, CoordinatesTransactions, CoordinatesShares, Protocol):
    """The coordinators of groups, of transactions, and of the state of share groups."""


class ChangesMetadata(Protocol):
    """The controller role, for a handler that reads its image and appends records."""

    @property
    def image(self) -> Image:
        """Speculative while this controller is active."""

    @property
    def static(self) -> StaticConfig: ...

    @property
    def env(self) -> Env: ...

    def submit(
        self, handler: Callable[[], ControllerResult[R]], refuse: Callable[[ErrorCode], R]
    ) -> R | Pending[R]: ...


class Forwards(Protocol):
    def forward(
        self,
        request: Message,
        context: Context,
        refusal: Callable[[ErrorCode], R],
        time_limit_ms: int | None = None,
    ) -> Pending[R]:
        """The active controller's answer; `refusal(code)` where there is none in time."""


class KnowsAuthorizer(Protocol):
    @property
    def authorizer(self) -> Authorizer | None:
        """None: every client may do everything."""


class NamesControllers(Protocol):
    def controllers(self) -> list[Endpoint]:
        """Where this node looks for the active controller."""


class NamesBrokers(Protocol):
    def sorted_brokers(self) -> list[BrokerRegistration]: ...

    def any_live_broker(self) -> int:
        """The broker that clients get as "controller"."""


class CreatesTopics(Protocol):
    def create_missing_topics(self, names: list[str], context: Context | None = None) -> None:
        """context: of the client that needs them; None: this broker does."""

    def create_missing_topic(self, name: str, wait_ms: int | None = None) -> Pending[bool]:
        """Complete once the controller has answered, whether the topic could be created or not, or after the wait."""


class HasLogLevels(HasConfig, Protocol):
    @property
    def log_levels(self) -> LogLevels: ...


class LogsDenials(Protocol):
    @property
    def log_denied(self) -> Callable[[Context, AclOperation, ResourceType, str], None]:
        """The client may not do this on the resource of that name: a line of the audit log, not too often."""


class Guarded(HasImage, HasConfig, LogsDenials, Protocol):
    """What guards use of a node."""


class Route(Protocol):
    """One API on one listener."""

    @property
    def min_version(self) -> int: ...

    @property
    def max_version(self) -> int: ...

    @property
    def is_forwarded(self) -> bool:
        """Brokers send it to this listener."""

    @property
    def is_change(self) -> bool: ...


class Dispatches(Protocol):
    """For requests within requests."""

    def routes(self, listener: str) -> Mapping[int, Route]: ...

    def serve(self, route: Any, request: Any, context: Context) -> Reply[Any]: ...


class Listens(Protocol):
    def api_keys(self, listener: str) -> list[ApiVersionsResponse.ApiVersion]:
        """What ApiVersions shows on this listener."""


class HasCluster(Protocol):
    @property
    def cluster_id(self) -> str: ...


class HasEnv(Protocol):
    @property
    def env(self) -> Env: ...


class Ports(
    ConfiguresItself,
    Forwards,
    KnowsAuthorizer,
    NamesControllers,
    NamesBrokers,
    CreatesTopics,
    HasLogLevels,
    Guarded,
    Dispatches,
    Listens,
    HasCluster,
    HasEnv,
    Protocol,
):
    """What a node offers to all handlers together. A role that the node does not have fails when it is used."""

    @property
    def broker(self) -> Broker: ...

    @property
    def controller(self) -> Controller: ...

    @property
    def quorum(self) -> Quorum: ...
