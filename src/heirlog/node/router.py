"""Which requests a listener serves, in which versions, and by which handler.

Everything comes from the descriptors in `heirlog.apis`: an API without one is not advertised and not answered. The file
of an API is imported at the first request for it, so that a node starts without modules that it may never need; until
then the generated index is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final

from heirlog.apis._index import INDEX
from heirlog.apis.common.api import Api, Entry, Forwarded, Role, Served, Versions
from heirlog.context import Context, Reply
from heirlog.metadata.config_def import StaticConfig
from heirlog.metadata.listener_security import ListenerSecurity
from heirlog.protocol.api import ApiKey
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.types import Endpoint


class ApiRoute:
    """One API on one kind of listener."""

    __slots__ = (
        "_api",
        "_module",
        "_role",
        "advertised",
        "forwards_all",
        "handle",
        "has_large_answer",
        "has_no_quota",
        "is_audited",
        "is_change",
        "is_forwarded",
        "is_repeated",
        "keeps_nothing",
        "key",
        "max_version",
        "min_version",
        "waits_for_turn",
    )

    def __init__(self, key: int, role: Role, entry: Entry, *, with_unstable: bool = False) -> None:
        """with_unstable: serve the last version, too, where Kafka has not released it."""
        self.key = key
        self._role = role
        self._module = entry.module
        self.min_version, self.max_version = entry.versions
        self.advertised: Versions | None = entry.advertised
        if entry.last_is_unstable and not with_unstable:
            self.max_version -= 1
            self.advertised = self.min_version, self.max_version
        """None: ApiVersions does not show it."""
        self.is_forwarded = entry.is_forwarded
        """Brokers send it to controllers."""
        self.forwards_all = not entry.has_handler
        """This listener only forwards it."""
        self.is_change = entry.is_change
        """Its answer waits until every broker knows what it has changed."""
        self.is_audited = entry.is_audited
        """Each request is a line of the audit log."""
        # an envelope holds a change that a client has sent to a broker
        self.waits_for_turn = self.is_change or (role is Role.CONTROLLER and key == ApiKey.ENVELOPE)
        """Handled in a later turn if the controller has done enough in this one."""
        self.has_large_answer = entry.has_large_answer
        self.keeps_nothing = entry.keeps_nothing
        self.is_repeated = entry.is_repeated
        self.has_no_quota = entry.has_no_quota
        self._api: Api[Any, Any] | None = None
        self.handle: Callable[[Any, Any, Context], Reply[Any]] = self._first
        """`handle(node, request, context)`; the first call imports the API's file."""

    def _first(self, node: Any, request: Any, context: Context) -> Reply[Any]:
        handle = self._forward if self.forwards_all else self.served.handle
        assert handle is not None, "only what is forwarded needs no handler"
        self.handle = handle
        return handle(node, request, context)

    @property
    def api(self) -> Api[Any, Any]:
        if self._api is None:
            self._api = import_module(f"heirlog.apis.{self._module}").API
            assert self._api is not None
        return self._api

    @property
    def served(self) -> Served[Any, Any] | Forwarded[Any, Any]:
        served = self.api.broker if self._role is Role.BROKER else self.api.controller
        assert served is not None, "it is in the index"
        return served

    def _forward(self, node: Any, request: Any, context: Context) -> Reply[Any]:
        def refusal(code: ErrorCode) -> Any:
            return self.api.refusal(request, code)

        answer: Reply[Any] = node.forward(request, context, refusal)
        return answer


# int: what a request's header holds is found by identity
ROUTES: Mapping[Role, Mapping[int, ApiRoute]] = {
    role: {int(key): ApiRoute(int(key), role, entry) for key, entry in entries.items()}
    for role, entries in INDEX.items()
}


@cache
def routes_with_unstable(role: Role) -> Mapping[int, ApiRoute]:
    """The same on a node with `unstable.api.versions.enable`."""
    unstable = {
        int(key): ApiRoute(int(key), role, entry, with_unstable=True)
        for key, entry in INDEX[role].items()
        if entry.last_is_unstable
    }
    return {**ROUTES[role], **unstable}


OPEN_TO_ALL: Final = ListenerSecurity("", "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class ListenerRoutes:
    """A named listener of this node: where it listens, what it tells others, and what it serves."""

    name: str
    bind: Endpoint
    advertised: Endpoint
    role: Role
    security: ListenerSecurity = OPEN_TO_ALL
    serves_unstable: bool = False
    """`unstable.api.versions.enable`"""
    routes: Mapping[int, ApiRoute] = field(init=False, repr=False, compare=False)
    """Looked up twice per request: found once."""

    def __post_init__(self) -> None:
        routes = routes_with_unstable(self.role) if self.serves_unstable else ROUTES[self.role]
        object.__setattr__(self, "routes", routes)


def listeners_of(config: StaticConfig) -> list[ListenerRoutes]:
    """A process that is only a controller has none for clients."""
    advertised = {
        listener.name: listener.endpoint
        for listener in (*config.advertised_listeners, *config.advertised_controller_listeners)
    }
    return [
        ListenerRoutes(
            listener.name,
            listener.endpoint,
            advertised.get(listener.name, listener.endpoint),
            Role.CONTROLLER if listener.name in config.controller_listener_names else Role.BROKER,
            config.security(listener.name),
            bool(config["unstable.api.versions.enable"]),
        )
        for listener in config.all_listeners
        if config.is_broker or listener.name in config.controller_listener_names
    ]
