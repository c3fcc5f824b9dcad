"""Connections at listeners with TLS or SASL whose clients have not proved who they are.

They are the first to go where there are too many connections: one of them is closed for a newcomer, the oldest of the
newcomer's address, or else the oldest of all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Protocol

from heirlog.server.door import OPEN, Door

UNAUTHENTICATED_MAX = 1000
"""At the listeners between nodes, which `max.connections` leaves open. A further one takes the place of another."""
LOOKED_AT_MAX = 1000
"""Of the oldest connections, for one of the same address."""


class UnauthenticatedConnection(Protocol):
    listener: str
    peer_host: str

    def abort(self, reason: str) -> None: ...


class UnauthenticatedConnections:
    def __init__(self, doors: Mapping[str, Door], exempt: Collection[str]) -> None:
        """doors: of the listeners with TLS or SASL. exempt: the listeners between nodes."""
        self._doors = doors
        self._exempt = exempt
        self._by_listener: dict[str, dict[UnauthenticatedConnection, None]] = {}
        """In the order of arrival."""

    def __len__(self) -> int:
        return sum(map(len, self._by_listener.values()))

    def any_at(self, name: str) -> bool:
        return bool(self._by_listener.get(name))

    def any_like(self, name: str) -> bool:
        """Whether a newcomer at this listener may take the place of one."""
        return any(self._like(name))

    def add(self, connection: UnauthenticatedConnection) -> None:
        name = connection.listener
        if name in self._exempt and sum(map(len, self._like(name))) >= UNAUTHENTICATED_MAX:
            self.replace_like(name, connection.peer_host)
        self._by_listener.setdefault(name, {})[connection] = None

    def remove(self, connection: UnauthenticatedConnection) -> None:
        """It has proved who it is, or is closed."""
        self._by_listener.get(connection.listener, {}).pop(connection, None)

    def replace_at(self, name: str, host: str) -> None:
        """Close one of this listener for a newcomer from `host`."""
        self._replace([self._by_listener.get(name, {})], host)

    def replace_like(self, name: str, host: str) -> None:
        """Close one whose place a newcomer at this listener may take, from `host`."""
        self._replace(self._like(name), host)

    def _like(self, name: str) -> list[dict[UnauthenticatedConnection, None]]:
        """Whose place a newcomer may take: of listeners between nodes, or of all others; those of this listener first.

        At a listener without TLS and SASL it may take none. It never authenticates, so none could take its place in
        turn, and a flood of them there would end every handshake elsewhere.
        """
        if self._doors.get(name, OPEN) is OPEN:
            return []
        is_exempt = name in self._exempt
        alike = [one for one in self._by_listener if (one in self._exempt) == is_exempt]
        return [self._by_listener[one] for one in sorted(alike, key=lambda one: one != name)]

    def _replace(self, groups: Iterable[dict[UnauthenticatedConnection, None]], host: str) -> None:
        """Close one of the first group that has any."""
        for group in groups:
            if group:
                oldest = next((one for one in islice(group, LOOKED_AT_MAX) if one.peer_host == host), next(iter(group)))
                del group[oldest]
                oldest.abort("too many connections, and this one had not authenticated")
                return
