"""A reserved port takes a listener of ours and nobody else's."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from heirlog.local.errors import LocalError
from heirlog.local.ports import PortReservation


@pytest.fixture
def reservation() -> Iterator[PortReservation]:
    held = PortReservation()
    yield held
    held.release()


def test_a_node_can_listen_on_a_reserved_port_and_gets_the_connections(reservation: PortReservation) -> None:
    port = reservation.reserve()
    for _ in range(2):  # a node that died and came back
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen()
            with socket.create_connection(("127.0.0.1", port)), listener.accept()[0]:
                pass


def test_nobody_listens_while_the_node_is_down(reservation: PortReservation) -> None:
    port = reservation.reserve()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_stranger_cannot_take_it(reservation: PortReservation) -> None:
    port = reservation.reserve()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))


def test_a_port_that_a_stranger_has_is_refused_with_its_number(reservation: PortReservation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(LocalError, match=f"port {port} "):
            reservation.reserve(port)
