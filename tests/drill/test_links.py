"""The proxy between nodes, with real sockets on both sides."""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from patience import eventually

from heirlog.drill.link_proxy import CLIENTS, address_of, node_at, sender_of
from heirlog.drill.links import Links

HELD_S = 0.2
WITHIN_S = 10.0


def hello(client_id: str) -> bytes:
    """The beginning of a request: api key 18, version 3, correlation id 0."""
    name = client_id.encode()
    body = bytes([0, 18, 0, 3, 0, 0, 0, 0]) + len(name).to_bytes(2, "big") + name
    return len(body).to_bytes(4, "big") + body


@pytest.fixture(scope="module")
def links() -> Iterator[Links]:
    links = Links()
    yield links
    links.close()


class Node:
    """Number 2: accepts what comes through the proxy."""

    def __init__(self, links: Links) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(WITHIN_S)
        self.proxied = links.listen(2, self._listening.getsockname()[1])

    def accept(self) -> socket.socket:
        accepted, _ = self._listening.accept()
        accepted.settimeout(WITHIN_S)
        return accepted

    def is_asked(self, within_s: float) -> bool:
        """Whether a connection waits to be accepted."""
        return bool(select.select([self._listening], [], [], within_s)[0])

    def close(self) -> None:
        self._listening.close()


@pytest.fixture(scope="module")
def node(links: Links) -> Iterator[Node]:
    node = Node(links)
    yield node
    node.close()


@contextmanager
def connected(node: Node, client_id: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """(the end that connected, the end of node 2), after the first request."""
    with socket.create_connection(("127.0.0.1", node.proxied), WITHIN_S) as opened:
        opened.sendall(hello(client_id))
        with node.accept() as accepted:
            assert accepted.recv(100) == hello(client_id)
            yield opened, accepted


def arrives(target: socket.socket, within_s: float = WITHIN_S) -> bytes | None:
    """What is received; None: nothing within this time."""
    target.settimeout(within_s)
    try:
        return target.recv(100)
    except TimeoutError:
        return None


def is_reset(target: socket.socket) -> bool:
    target.settimeout(WITHIN_S)
    try:
        return target.recv(100) == b"never"
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("request_bytes", "sender"),
    [
        (hello("heirlog-1"), 1),
        (hello("heirlog-100") + b"more", 100),
        (hello("rdkafka"), CLIENTS),
        (hello("heirlog-1x"), CLIENTS),
        (bytes(12) + b"\xff\xff", CLIENTS),
        (b"GET / HTTP/1.1\r\n", CLIENTS),
        (b"\x16\x03\x01\x01\x17\x01\x00\x01\x13\x03\x03\x00\x01\x00", CLIENTS),
        (hello("heirlog-1")[:-1], None),
        (b"", None),
    ],
)
def test_the_first_request_names_its_sender(request_bytes: bytes, sender: int | None) -> None:
    assert sender_of(request_bytes) == sender


def test_bytes_pass_in_both_directions_and_an_end_is_passed_on(node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, accepted):
        opened.sendall(b"request")
        assert arrives(accepted) == b"request"
        accepted.sendall(b"response")
        assert arrives(opened) == b"response"
        opened.close()
        assert arrives(accepted) == b""


def test_a_held_link_delivers_after_it_is_healed_and_holds_one_direction_only(links: Links, node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, accepted):
        links.hold([(1, 2)])
        opened.sendall(b"request")
        accepted.sendall(b"response")
        assert arrives(opened) == b"response"
        assert arrives(accepted, HELD_S) is None
        links.heal([(1, 2)])
        assert arrives(accepted) == b"request"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a machine has only one address of its own")
def test_an_encrypted_connection_is_known_by_the_address_from_which_the_node_opened_it(
    links: Links, node: Node
) -> None:
    assert [node_at(address_of(number)) for number in (1, 100, 300, 65_000)] == [1, 100, 300, 65_000]
    assert node_at("127.0.0.1") is None
    links.hold([(3, 2)])
    with socket.create_connection(("127.0.0.1", node.proxied), WITHIN_S, (address_of(3), 0)) as opened:
        opened.sendall(b"\x16\x03\x01")
        assert not node.is_asked(HELD_S)
        links.heal([(3, 2)])
        with node.accept() as accepted:
            assert arrives(accepted) == b"\x16\x03\x01"


def test_a_held_link_of_one_node_leaves_the_others_alone(links: Links, node: Node) -> None:
    links.hold([(1, 2), (2, 1)])
    try:
        with connected(node, "rdkafka") as (opened, accepted):
            opened.sendall(b"request")
            assert arrives(accepted) == b"request"
    finally:
        links.heal([(1, 2), (2, 1)])


def test_a_cut_link_resets_connections_and_refuses_new_ones(links: Links, node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, accepted):
        links.cut([(1, 2)])
        try:
            assert is_reset(opened) and is_reset(accepted)
            with socket.create_connection(("127.0.0.1", node.proxied), WITHIN_S) as again:
                again.sendall(hello("heirlog-1"))
                assert is_reset(again)
        finally:
            links.heal([(1, 2)])
    with connected(node, "heirlog-1") as (opened, accepted):
        accepted.sendall(b"healed")
        assert arrives(opened) == b"healed"


def test_a_delayed_link_is_late_and_loses_nothing(links: Links, node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, accepted):
        links.delay([(2, 1)], 300)
        try:
            began_s = time.monotonic()
            accepted.sendall(b"response")
            assert arrives(opened) == b"response"
            assert time.monotonic() - began_s > 0.29
        finally:
            links.heal([(2, 1)])


def test_a_half_closed_link_ends_in_one_direction(links: Links, node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, accepted):
        links.half_close([(1, 2)])
        assert arrives(accepted) == b"", "node 2 reads the end of the stream"
        accepted.sendall(b"response")
        assert arrives(opened) == b"response"
        opened.sendall(b"lost")
        links.heal([(1, 2)])
        assert is_reset(opened)


def test_a_reset_ends_connections_once(links: Links, node: Node) -> None:
    with connected(node, "heirlog-1") as (opened, _):
        links.reset([(2, 1)])
        assert is_reset(opened)
    with connected(node, "heirlog-1") as (opened, accepted):
        opened.sendall(b"again")
        assert arrives(accepted) == b"again"


def test_a_listener_that_is_gone_resets_its_clients(links: Links) -> None:
    gone = Node(links)
    gone.close()

    def is_refused() -> bool:
        with socket.create_connection(("127.0.0.1", gone.proxied), WITHIN_S) as opened:
            opened.sendall(hello("heirlog-1"))
            return is_reset(opened)

    eventually(is_refused, "the connection to end")
