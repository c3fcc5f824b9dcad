"""Whose place a newcomer takes among connections that have not proved who they are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from heirlog.server import unauthenticated_connections
from heirlog.server.door import Door
from heirlog.server.unauthenticated_connections import UnauthenticatedConnections

NODES, CLIENTS, MORE_CLIENTS, OPEN = "NODES", "CLIENTS", "MORE_CLIENTS", "OPEN"


@dataclass(eq=False)
class Stranger:
    listener: str
    peer_host: str = "10.0.0.1"
    ends: list[str] = field(default_factory=list)

    def abort(self, reason: str) -> None:
        self.ends.append(reason)


@pytest.fixture
def connections() -> UnauthenticatedConnections:
    return UnauthenticatedConnections({name: Door() for name in (NODES, CLIENTS, MORE_CLIENTS)}, exempt=[NODES])


def added(connections: UnauthenticatedConnections, *strangers: Stranger) -> tuple[Stranger, ...]:
    for stranger in strangers:
        connections.add(stranger)
    return strangers


def test_the_oldest_of_the_same_address_goes_first(connections: UnauthenticatedConnections) -> None:
    oldest, alike, _ = added(
        connections, Stranger(CLIENTS), Stranger(CLIENTS, "10.0.0.2"), Stranger(CLIENTS, "10.0.0.2")
    )
    connections.replace_at(CLIENTS, "10.0.0.2")
    assert (len(oldest.ends), len(alike.ends)) == (0, 1)
    connections.replace_at(CLIENTS, "10.0.0.3")
    assert len(oldest.ends) == 1


def test_a_client_takes_no_place_between_nodes_and_its_own_listener_comes_first(
    connections: UnauthenticatedConnections,
) -> None:
    node, other, own = added(connections, Stranger(NODES), Stranger(MORE_CLIENTS), Stranger(CLIENTS))
    for _ in range(3):
        connections.replace_like(CLIENTS, "10.0.0.1")
    assert (len(node.ends), len(other.ends), len(own.ends)) == (0, 1, 1)
    assert connections.any_like(NODES) and not connections.any_like(CLIENTS)


def test_a_newcomer_that_never_authenticates_takes_no_place(connections: UnauthenticatedConnections) -> None:
    added(connections, Stranger(CLIENTS))
    assert not connections.any_like(OPEN)


def test_one_that_has_authenticated_keeps_its_place(connections: UnauthenticatedConnections) -> None:
    (client,) = added(connections, Stranger(CLIENTS))
    connections.remove(client)
    connections.remove(client)  # again, as its connection closes
    assert (len(connections), connections.any_at(CLIENTS)) == (0, False)


def test_between_nodes_their_number_is_limited(
    connections: UnauthenticatedConnections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated_connections, "UNAUTHENTICATED_MAX", 2)
    first, second, third = added(connections, *(Stranger(NODES) for _ in range(3)))
    assert [len(one.ends) for one in (first, second, third)] == [1, 0, 0]
