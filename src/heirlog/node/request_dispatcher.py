"""When a request is served: at once, or as soon as this node can answer it truthfully.

    on a broker's listener, this broker has no metadata yet    held until it has applied its own registration
    a change, and the controller has done enough this turn     held until a later turn (`controller/turn_budget.py`)
    the node has an authorizer and does not know the ACLs yet  held until it does; super users on an early listener not
    otherwise                                                  permission -> handler -> audit line
                                                               -> a change: once every broker knows it

Without the first rule clients would learn from an empty image that their topics are gone. A held request keeps its
place in the order of its connection, and is forgotten when that closes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heirlog.apis.common.api import Role
from heirlog.apis.common.call import changed
from heirlog.context import Context, Reply
from heirlog.env import Cancel
from heirlog.node.audit import AuditLog
from heirlog.node.connection import ClientConnection
from heirlog.node.read_your_writes import MetadataPropagation
from heirlog.node.router import ApiRoute, ListenerRoutes
from heirlog.pending import Pending
from heirlog.protocol.frames import RequestHeader

if TYPE_CHECKING:
    from heirlog.apis.common.ports import Ports


class RequestDispatcher:
    def __init__(self, node: Ports, every_broker: MetadataPropagation, audit: AuditLog) -> None:
        """node: what handlers get."""
        self._node = node
        self._every_broker = every_broker
        self._authorizer = node.authorizer
        self._audit = audit
        self.has_metadata = False
        """As a broker: its clients' requests are served."""
        self._held: list[Callable[[], None]] = []
        self._held_for_acls: list[Callable[[], None]] = []

    @property
    def held_count(self) -> int:
        """Requests that wait for metadata."""
        return len(self._held)

    def serves(self, listener: ListenerRoutes) -> bool:
        return listener.role is Role.CONTROLLER or self.has_metadata

    def when_it_serves(self, fn: Callable[[], None]) -> Cancel:
        self._held.append(fn)

        def cancel() -> None:
            if fn in self._held:
                self._held.remove(fn)

        return cancel

    def caught_up(self) -> None:
        """The broker role has applied its own registration: its metadata is as new as it must be."""
        self.has_metadata = True
        self.acls_are_loaded()
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def acls_are_loaded(self) -> None:
        if self._authorizer is None or self._authorizer.is_loaded:
            return
        self._authorizer.is_loaded = True
        held, self._held_for_acls = self._held_for_acls, []
        for go_on in held:
            go_on()

    def handle(self, listener: ListenerRoutes, header: RequestHeader, request: Any, context: Context) -> Reply[Any]:
        """The reply of the handler of this request's API.

        `Any` is deliberate here. Which request and response belong together is decided by the number in a header, which
        no type can know. Before this call the codec has made `request` of the class of that API. After it,
        `Served[Q, R]` and `Api[Q, R]` of `apis` check that each handler takes Q and gives `Reply[R]`.
        """
        route = listener.routes[header.api_key]
        if listener.role is Role.BROKER and not self.has_metadata:
            return self._hold(route, request, context, self._held.append)
        if route.waits_for_turn and self._node.controller.turns.is_used_up:
            return self._hold(route, request, context, self._node.controller.turns.wait)
        authorizer = self._authorizer
        if authorizer is None and not route.is_audited:
            return route.handle(self._node, request, context)
        if authorizer is not None and not authorizer.is_loaded and not self._is_early(context):
            return self._hold(route, request, context, self._held_for_acls.append)
        return self.serve(route, request, context)

    def _is_early(self, context: Context) -> bool:
        """Whether to serve a request before the ACLs are known: a quorum needs its nodes before it has any."""
        on_early_listener = context.listener in self._node.config.early_start_listeners
        return on_early_listener and self._authorizer is not None and self._authorizer.is_super_user(context.principal)

    def serve(self, route: ApiRoute, request: Any, context: Context) -> Reply[Any]:
        """The handler's answer, as far as the client may have it, and when it may (`read_your_writes`)."""
        if not route.is_change:
            return self._serve(route, request, context)
        controller = self._node.controller
        first, later_parts = controller.next_offset, controller.later_parts
        answer = self._serve(route, request, context)
        if isinstance(answer, Pending) and controller.later_parts > later_parts:
            # its last record is not appended yet; it will be committed when the answer comes
            return self._every_broker.when_all_know_later(answer, lambda: controller.committed_offset + 1)
        end = controller.next_offset
        return answer if end == first else self._every_broker.when_all_know(answer, end)

    def _serve(self, route: ApiRoute, request: Any, context: Context) -> Reply[Any]:
        if not route.is_audited:
            return self._serve_allowed(route, request, context)
        answer = self._serve_allowed(route, request, context)
        return changed(answer, lambda response: self._audit.write(route.key, request, context, response))

    def _serve_allowed(self, route: ApiRoute, request: Any, context: Context) -> Reply[Any]:
        authorizer = self._authorizer
        if authorizer is None or route.forwards_all:
            return route.handle(self._node, request, context)
        return route.api.guarded(route.served, route.handle, self._node, authorizer, request, context)

    def _hold(
        self, route: ApiRoute, request: Any, context: Context, wait: Callable[[Callable[[], None]], None]
    ) -> Pending[Any]:
        """Answer later; wait: gets what then serves the request, and calls it when this node can."""
        under_way: Pending[Any] | None = None

        def abandoned() -> None:
            if under_way is not None:
                under_way.abandon()

        def go_on() -> None:
            nonlocal under_way
            if held.done:
                return
            answer = self.serve(route, request, context)
            if isinstance(answer, Pending):
                under_way = answer
                answer.then(held.complete)
            else:
                held.complete(answer)

        held: Pending[Any] = Pending(abandoned)
        connection = context.connection
        assert isinstance(connection, ClientConnection), "requests come on connections"
        # as a request's own handler: what it cannot digest ends its connection, not the start of the broker
        wait(lambda: connection.transport.run(go_on))
        return held
