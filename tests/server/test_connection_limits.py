"""max.connections and its kin, and what connections may cost: on loopback sockets."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import struct
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from heirlog.env import Region
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.definition import ConfigError
from heirlog.metadata.server_configs import SERVER_CONFIGS
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.protocol.types import Endpoint
from heirlog.server import send_queue, stream, unauthenticated_connections
from heirlog.server.connection_limits import (
    ANY_LISTENER,
    NONE,
    UNLIMITED,
    ConnectionLimits,
    ListenerLimits,
    connection_limits,
    descriptors_for_connections,
    exempt_listeners,
    listener_limits,
)
from heirlog.server.connection_rates import AcceptRates
from heirlog.server.door import Door
from heirlog.server.os_file import OsFile
from heirlog.server.stream import FIRST_BUFFER

HOST = "127.0.0.1"


def echo(client: Any, header: Any, frame: memoryview) -> None:
    client.transport.send(header, ApiVersionsResponse())


async def connect(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(endpoint.host, endpoint.port)


async def is_served(reader: asyncio.StreamReader, timeout_s: float = 30.0) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            return len(await reader.read(4)) == 4
    except TimeoutError:
        return False


def speaks_both() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as listening, socket.socket() as client:
            listening.bind(("::", 0))
            listening.listen()
            return client.connect_ex((HOST, listening.getsockname()[1])) == 0
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="how many connections wait is for each system to say")
def test_as_many_connections_wait_as_the_backlog_says(fake_node: Any) -> None:
    async def scenario() -> list[int]:
        waiting = []
        for backlog in (1, 3):
            # nothing is accepted: the loop does not turn in between
            node = fake_node(echo, backlog=backlog)
            clients = [socket.socket() for _ in range(8)]
            for client in clients:
                client.settimeout(0.05)
            waiting.append(sum(client.connect_ex((HOST, node.endpoint.port)) == 0 for client in clients))
            for client in clients:
                client.close()
            node.server.stop()
        return waiting

    # Linux lets one more wait
    assert asyncio.run(scenario()) == [2, 4]


def test_at_max_connections_newcomers_wait_until_somebody_leaves_or_the_limit_is_raised(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        limits = [ConnectionLimits(total=2)]
        node = fake_node(echo, limits=lambda: limits[0], max_idle_ms=400_000)
        pairs = [await connect(node.endpoint) for _ in range(4)]
        for _, writer in pairs:
            writer.write(framed(1))
        assert [await is_served(reader) for reader, _ in pairs[:2]] == [True, True]
        assert not await is_served(pairs[2][0], 0.1)
        assert node.server.connection_count == 2
        pairs[0][1].close()
        assert await is_served(pairs[2][0])
        assert not await is_served(pairs[3][0], 0.1)
        limits[0] = ConnectionLimits(total=3)
        node.server._close_idle()  # the sweep of every ten seconds
        assert await is_served(pairs[3][0])
        assert node.events("warning") == ["connections-full"]
        node.server.stop()

    asyncio.run(scenario())


def test_a_node_is_let_in_beyond_max_connections_and_the_client_that_was_quiet_for_longest_goes(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, limits=lambda: ConnectionLimits(total=2), exempt=["INTERNAL"])
        internal = node.server.listen("INTERNAL", Endpoint(HOST, 0))
        quiet, busy = await connect(node.endpoint), await connect(node.endpoint)
        await eventually(lambda: node.server.connection_count == 2)
        busy[1].write(framed(1))
        assert await is_served(busy[0])
        reader, writer = await connect(internal)
        writer.write(framed(1))
        assert await is_served(reader)
        assert await quiet[0].read() == b""
        busy[1].write(framed(2))
        assert await is_served(busy[0])
        node.server.stop()

    asyncio.run(scenario())


def test_a_stranger_at_the_listener_of_nodes_takes_no_place_until_it_has_proved_to_be_one(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        doors = {"INTERNAL": Door(30.0)}
        node = fake_node(echo, limits=lambda: ConnectionLimits(total=2), exempt=["INTERNAL"], doors=doors)
        internal = node.server.listen("INTERNAL", Endpoint(HOST, 0))
        quiet, busy = await connect(node.endpoint), await connect(node.endpoint)
        await eventually(lambda: node.server.connection_count == 2)
        busy[1].write(framed(1))
        assert await is_served(busy[0])
        strangers = [await connect(internal) for _ in range(3)]
        await eventually(lambda: len(node.clients) == 5)
        await asyncio.sleep(0)
        assert node.server.connection_count == 5
        node.clients[2].transport.authenticated()
        assert await quiet[0].read() == b""
        assert node.server.connection_count == 4
        for _, writer in strangers:
            writer.close()
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a machine has only one address of its own")
def test_unauthenticated_at_the_listener_of_nodes_are_not_without_number(
    fake_node: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that has proved who it is stays, and so does one of a quiet address while another comes again."""
    monkeypatch.setattr(unauthenticated_connections, "UNAUTHENTICATED_MAX", 3)

    async def come(endpoint: Endpoint, host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(endpoint.host, endpoint.port, local_addr=(host, 0))

    async def scenario() -> None:
        node = fake_node(echo, exempt=["INTERNAL"], doors={"INTERNAL": Door(30.0)})
        internal = node.server.listen("INTERNAL", Endpoint("0.0.0.0", 0))
        internal = Endpoint(HOST, internal.port)
        peer = await come(internal, HOST)
        await eventually(lambda: len(node.clients) == 1)
        node.clients[0].transport.authenticated()
        quiet = await come(internal, "127.0.0.2")
        flood = [await come(internal, HOST) for _ in range(10)]
        await eventually(lambda: len(node.clients) == 12)
        await eventually(lambda: node.server.connection_count == 4)
        assert [await reader.read() for reader, _ in flood[:8]] == [b""] * 8
        assert [client.closed_times for client in node.clients[:2]] == [0, 0]
        for _ in range(3):
            await come(internal, "127.0.0.3")
        await eventually(lambda: node.server.connection_count == 4)
        assert await quiet[0].read() == b"", "the oldest, where its address has none"
        peer[1].write(framed_request)
        assert await is_served(peer[0])
        node.server.stop()
        await eventually(lambda: not node.server.connection_count)
        assert len(node.server._unauthenticated) == 0

    framed_request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    asyncio.run(scenario())


def test_strangers_do_not_keep_nodes_out_of_a_listener_between_nodes_that_is_full(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        limits = {"INTERNAL": ListenerLimits(total=2)}
        node = fake_node(
            echo,
            exempt=["INTERNAL"],
            doors={"INTERNAL": Door(30.0)},
            listener_limits=lambda name: limits.get(name, ANY_LISTENER),
        )
        internal = node.server.listen("INTERNAL", Endpoint(HOST, 0))
        strangers = [await connect(internal) for _ in range(5)]
        await eventually(lambda: len(node.clients) == 5)
        assert [await reader.read() for reader, _ in strangers[:3]] == [b""] * 3
        assert node.server.connection_count == 2
        peers = []
        for number in (5, 6):
            peers.append(await connect(internal))
            await eventually(lambda number=number: len(node.clients) > number)
            node.clients[number].transport.authenticated()
        assert [await reader.read() for reader, _ in strangers[3:]] == [b""] * 2
        # two nodes have both places: nobody is closed for a third connection, which waits
        late = await connect(internal)
        late[1].write(framed(1))
        assert not await is_served(late[0], 0.1)
        for reader, writer in peers:
            writer.write(framed(2))
            assert await is_served(reader)
        peers[0][1].close()
        assert await is_served(late[0])
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("full", ["listener", "node", "both"])
def test_handshakes_that_are_not_finished_do_not_keep_clients_out(
    fake_node: Any, framed: Any, eventually: Any, full: str
) -> None:
    """The oldest of them goes for a new connection; a client that has authenticated stays."""
    own = ANY_LISTENER if full == "node" else ListenerLimits(total=3)
    total = UNLIMITED if full == "listener" else ConnectionLimits(total=3)

    async def scenario() -> None:
        node = fake_node(
            echo,
            doors={"CLIENTS": Door(30.0)},
            limits=lambda: total,
            listener_limits=lambda name: own,
            exempt=["NODES"],
        )
        closed = node.server.listen("CLIENTS", Endpoint(HOST, 0))
        first = await connect(closed)
        await eventually(lambda: len(node.clients) == 1)
        node.clients[0].transport.authenticated()
        flood = [await connect(closed) for _ in range(200)]
        # or more: a client that another test left behind may look for its broker at this port
        await eventually(lambda: len(node.clients) >= 201)
        await eventually(lambda: node.server.connection_count == 3)
        assert [await reader.read() for reader, _ in flood[:198]] == [b""] * 198
        before = len(node.clients)
        second = await connect(closed)
        await eventually(lambda: len(node.clients) > before)
        node.clients[before].transport.authenticated()
        for reader, writer in (first, second):
            writer.write(framed(1))
            assert await is_served(reader)
        assert node.server.connection_count == 3
        assert node.events("warning") == [], "it was never full"
        node.server.stop()
        await eventually(lambda: not node.server.connection_count)
        assert len(node.server._unauthenticated) == 0

    asyncio.run(scenario())


def test_strangers_at_an_open_listener_end_no_handshake_and_a_client_can_still_log_in(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    """None could take their place in turn: they wait, as on Kafka."""

    async def scenario() -> None:
        node = fake_node(
            echo, doors={"CLIENTS": Door(30.0)}, limits=lambda: ConnectionLimits(total=3), exempt=["NODES"]
        )
        closed, nodes = (node.server.listen(name, Endpoint(HOST, 0)) for name in ("CLIENTS", "NODES"))
        client, handshake = await connect(closed), await connect(closed)
        await eventually(lambda: len(node.clients) == 2)
        node.clients[0].transport.authenticated()
        strangers = [await connect(node.endpoint) for _ in range(20)]
        for _, writer in strangers:
            writer.write(framed(1))
        assert await is_served(strangers[0][0])
        assert not await is_served(strangers[1][0], 0.1)
        # neither does it keep others from logging in: a newcomer takes the place of a handshake there
        assert node.server.connection_count == 3
        assert node.clients[1].closed_times == 0
        late = await connect(closed)
        await eventually(lambda: len(node.clients) == 4)
        assert await handshake[0].read() == b""
        node.clients[3].transport.authenticated()
        # all have shown who they are, or need not: newcomers wait at both listeners, and a node is let in
        waiting = await connect(closed)
        waiting[1].write(framed(1))
        assert not await is_served(waiting[0], 0.1)
        for reader, writer in (client, late):
            writer.write(framed(1))
            assert await is_served(reader)
        peer = await connect(nodes)
        for reader, writer in (peer, client, late):
            writer.write(framed(2))
            assert await is_served(reader)
        node.server.stop()
        await eventually(lambda: not node.server.connection_count)

    asyncio.run(scenario())


def test_each_listener_that_waits_accepts_again_when_there_is_room(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, doors={"CLIENTS": Door(30.0)}, limits=lambda: ConnectionLimits(total=1))
        closed = node.server.listen("CLIENTS", Endpoint(HOST, 0))
        first = await connect(closed)
        await eventually(lambda: len(node.clients) == 1)
        node.clients[0].transport.authenticated()
        waiting = [await connect(node.endpoint), await connect(closed)]
        for reader, writer in waiting:
            writer.write(framed(1))
            assert not await is_served(reader, 0.1)
        first[1].close()
        # either may be first
        await eventually(lambda: len(node.clients) == 2)
        node.clients[1].transport.authenticated()
        served, late = waiting if node.clients[1].transport.listener != "CLIENTS" else reversed(waiting)
        assert await is_served(served[0])
        assert not await is_served(late[0], 0.1)
        served[1].close()
        assert await is_served(late[0])
        late[1].close()
        await eventually(lambda: not node.server.connection_count)
        node.server.stop()

    asyncio.run(scenario())


def test_who_has_max_connections_per_ip_gets_no_more_and_the_log_one_line(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, limits=lambda: ConnectionLimits(per_host=3, overrides={"10.0.0.1": 9}))
        kept = [await connect(node.endpoint) for _ in range(3)]
        for _ in range(20):
            reader, writer = await connect(node.endpoint)
            try:
                assert await reader.read() == b""
            except ConnectionResetError:
                pass
            writer.close()
        assert node.events("warning") == ["connection-refused"]
        kept[0][1].close()
        await eventually(lambda: node.server.connection_count == 2)
        reader, writer = await connect(node.endpoint)
        writer.write(framed(1))
        assert await is_served(reader)
        node.server.stop()
        await eventually(lambda: node.server.connection_count == 0)
        assert not node.server._per_host, "an address that has no connection is forgotten"

    asyncio.run(scenario())


@contextmanager
def descriptors(more: int) -> Iterator[None]:
    """This process may open so many descriptors more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.collect()  # connections of earlier tests
    highest = max(int(name) for name in os.listdir("/dev/fd"))
    with ExitStack() as opened:
        # what earlier tests have left open may have free numbers in between
        while (number := os.dup(0)) < highest:
            opened.callback(os.close, number)
        os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (number + more, hard))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        yield


def test_connections_leave_descriptors_for_files(fake_node: Any, framed: Any, eventually: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        node = fake_node(echo, exempt=["INTERNAL"])
        internal = node.server.listen("INTERNAL", Endpoint(HOST, 0))
        # both ends of a connection are in this process
        with descriptors(more=120), ExitStack() as opened:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = descriptors_for_connections(between_nodes=False)
            assert most == limit - limit // 8
            crowd = []
            while not node.events("error"):
                crowd.append(await connect(node.endpoint))
                await asyncio.sleep(0)
            reader, writer = await connect(internal)
            writer.write(framed(1))
            assert await is_served(reader), "a node is let in"
            for index in range(limit // 8 // 2 - 2):
                opened.enter_context((tmp_path / str(index)).open("w"))
            for _, writer in crowd[:6]:
                writer.close()
            reader, writer = await connect(node.endpoint)
            writer.write(framed(1))
            assert await is_served(reader), "there is room again"
            assert node.events("error") == ["accept-failed"]
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.skipif(not speaks_both(), reason="this machine has no socket for IPv4 and IPv6")
def test_an_ipv4_client_of_a_listener_for_both_has_the_limits_of_its_ipv4_address(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, limits=lambda: ConnectionLimits(overrides={HOST: 1}))
        both = Endpoint(HOST, node.server.listen("BOTH", Endpoint("::", 0)).port)
        first = await connect(both)
        first[1].write(framed(1))
        assert await is_served(first[0])
        assert node.clients[0].transport.peer_host == HOST
        for endpoint in (both, node.endpoint):
            reader, _ = await connect(endpoint)
            assert await reader.read() == b""
        node.server.stop()

    asyncio.run(scenario())


def test_a_listener_with_a_limit_of_its_own_leaves_the_others_open(fake_node: Any, framed: Any) -> None:
    """Also one between nodes."""

    async def scenario() -> None:
        limits = [ListenerLimits(total=1)]
        node = fake_node(
            echo,
            exempt=["PLAINTEXT"],
            listener_limits=lambda name: limits[0] if name == "PLAINTEXT" else ANY_LISTENER,
            doors={"UNUSED": Door(0.4)},  # so that limits are looked at often
        )
        other = node.server.listen("OTHER", Endpoint(HOST, 0))
        first, second, third = [await connect(node.endpoint) for _ in range(3)]
        elsewhere = await connect(other)
        for _, writer in (first, second, third, elsewhere):
            writer.write(framed(1))
        assert [await is_served(reader) for reader, _ in (first, elsewhere)] == [True, True]
        assert not await is_served(second[0], 0.1)
        first[1].close()
        assert await is_served(second[0])
        limits[0] = ANY_LISTENER
        assert await is_served(third[0]), "a limit that was raised is noticed"
        assert "connections-full" in node.events("warning")
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("of_node", [True, False])
def test_above_the_rate_the_next_connection_is_accepted_later(fake_node: Any, framed: Any, of_node: bool) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = fake_node(
            echo,
            limits=lambda: ConnectionLimits(rate=10 if of_node else NONE),
            listener_limits=lambda name: ANY_LISTENER if of_node else ListenerLimits(rate=10),
            # two windows of 100 ms: two connections are as many as the rate allows in them
            accept_rates=AcceptRates(lambda: int(loop.time() * 1000), 2, 100),
        )
        began = loop.time()
        pairs = [await connect(node.endpoint) for _ in range(8)]
        for _, writer in pairs:
            writer.write(framed(1))
        assert [await is_served(reader) for reader, _ in pairs] == [True] * 8, "none is refused"
        assert loop.time() - began > 0.3
        node.server.stop()

    asyncio.run(scenario())


def test_the_rate_of_the_node_does_not_count_between_nodes(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = fake_node(
            echo,
            exempt=["PLAINTEXT"],
            limits=lambda: ConnectionLimits(rate=1),
            accept_rates=AcceptRates(lambda: int(loop.time() * 1000), 11, 3_600_000),
        )
        pairs = [await connect(node.endpoint) for _ in range(20)]
        for _, writer in pairs:
            writer.write(framed(1))
        assert [await is_served(reader) for reader, _ in pairs] == [True] * 20
        node.server.stop()

    asyncio.run(scenario())


def test_limits_are_read_from_kafkas_configurations() -> None:
    values = {
        "max.connections": 10,
        "max.connections.per.ip": 2,
        "max.connections.per.ip.overrides": "127.0.0.1:100, [::1]:5,localhost:7",
        "max.connection.creation.rate": 9,
    }
    limits = connection_limits(values.__getitem__)
    assert (limits.total, limits.of_host("10.1.1.1"), limits.of_host("127.0.0.1")) == (10, 2, 7)
    assert limits.rate == 9
    assert listener_limits({"max.connections": 3, "max.connection.creation.rate": 4}.__getitem__) == (3, 4)
    definition = SERVER_CONFIGS["max.connections.per.ip.overrides"]
    for refused in ("localhost", "localhost:many", "a:1,,b:2"):
        with pytest.raises(ConfigError):
            definition.parse(refused)


@pytest.mark.parametrize(
    ("roles", "listeners", "exempt"),
    [
        ("broker", "PLAINTEXT://:9092", set()),
        ("broker", "PLAINTEXT://:9092,INSIDE://:9095", {"INSIDE"}),
        ("broker,controller", "PLAINTEXT://:9092,CONTROLLER://:9093", {"CONTROLLER"}),
        ("controller", "CONTROLLER://:9093", set()),
    ],
)
def test_listeners_between_nodes_are_exempt_where_clients_have_others(
    roles: str, listeners: str, exempt: set[str]
) -> None:
    properties = {
        "process.roles": roles,
        "node.id": "1",
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": "/data",
    }
    if "INSIDE" in listeners:
        properties["inter.broker.listener.name"] = "INSIDE"
    assert exempt_listeners(parse_static(properties)) == exempt


@pytest.mark.parametrize(("limit", "each"), [(100_000_000, 250_000), (524_288, 30_000)], ids=["client", "stranger"])
def test_an_announced_size_costs_nothing_until_it_arrives(
    fake_node: Any, eventually: Any, limit: int, each: int
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, frame_limit=limit)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            pairs = [await connect(node.endpoint) for _ in range(100)]
            for _, writer in pairs:
                writer.write(struct.pack(">i", limit - 1000) + bytes(1000))
            await eventually(
                lambda: (
                    len(node.clients) == 100
                    and all(client.transport._stream._filled == 1000 for client in node.clients)
                )
            )
            assert tracemalloc.get_traced_memory()[1] - before < 100 * each
        finally:
            tracemalloc.stop()
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("announced", "sent", "first", "expected"),
    [
        (66_000, 1_000, FIRST_BUFFER, 66_000),
        (10_000_000, 1_000, FIRST_BUFFER, FIRST_BUFFER),
        (10_000_000, 1_000, 2_000, 4_000),
        (3_000, 1_000, 2_000, 3_000),
    ],
    ids=["a batch of 64 KiB", "little of much", "more of much", "much of it"],
)
def test_a_frame_has_a_buffer_for_four_times_what_came(
    fake_node: Any,
    eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
    announced: int,
    sent: int,
    first: int,
    expected: int,
) -> None:
    monkeypatch.setattr(stream, "FIRST_BUFFER", first)

    async def scenario() -> None:
        node = fake_node(echo, frame_limit=100_000_000)
        _, writer = await connect(node.endpoint)
        writer.write(struct.pack(">i", announced) + bytes(sent))
        await eventually(lambda: node.clients and node.clients[0].transport._stream._filled == sent)
        assert len(node.clients[0].transport._stream._frame) == expected
        node.server.stop()

    asyncio.run(scenario())


def test_a_size_that_comes_alone_is_not_taken_for_a_frame_where_frames_are_tiny(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, frame_limit=100)
        reader, writer = await connect(node.endpoint)
        frame = framed(1)
        writer.write(frame[:4])
        await eventually(lambda: node.clients and node.clients[0].transport._stream._frame_size)
        writer.write(frame[4:])
        assert await is_served(reader)
        node.server.stop()

    asyncio.run(scenario())


@pytest.fixture
def file(tmp_path: Path) -> Iterator[OsFile]:
    (tmp_path / "log").write_bytes(os.urandom(4_000_000))
    file = OsFile(str(tmp_path / "log"), os.open(tmp_path / "log", os.O_RDWR))
    yield file
    file.close()


@pytest.mark.parametrize("size", [50_000, 200_000], ids=["copied", "sendfile"])
def test_an_answer_that_nobody_reads_holds_neither_its_bytes_nor_descriptors(
    fake_node: Any, framed: Any, eventually: Any, descriptors_of: Any, file: OsFile, size: int
) -> None:
    regions = [Region(file, 0, size)] * 1000

    def answer(client: Any, header: Any, frame: memoryview) -> None:
        client.transport._stream.write([struct.pack(">i", 1000 * size), *regions])

    async def scenario() -> None:
        node = fake_node(answer)
        _, writer = await asyncio.open_connection(node.endpoint.host, node.endpoint.port, limit=1024)
        tracemalloc.start()
        try:
            writer.write(framed(1))
            await eventually(lambda: node.clients[0].transport._stream.queued_bytes > 900 * size)
            assert tracemalloc.get_traced_memory()[1] < 4 * send_queue.OUTPUT_LIMIT
            assert descriptors_of(Path(file.path)) <= 1
        finally:
            tracemalloc.stop()
        node.server.stop()
        await eventually(lambda: node.clients[0].closed_times)

    asyncio.run(scenario())
    file.close()
    assert file.fileno() < 0, "nobody holds it any more"


@pytest.mark.parametrize("size", [100, 200_000], ids=["copied", "sendfile"])
def test_an_answer_out_of_a_log_that_was_removed_meanwhile_ends_its_connection_and_blames_no_disk(
    fake_node: Any, framed: Any, eventually: Any, file: OsFile, size: int
) -> None:
    blamed: list[str] = []

    def answer(client: Any, header: Any, frame: memoryview) -> None:
        client.read_failed = lambda path, error: blamed.append(path)
        file.close()
        client.transport._stream.write([b"head", Region(file, 0, size)])

    async def scenario() -> None:
        node = fake_node(answer)
        reader, writer = await connect(node.endpoint)
        writer.write(framed(1))
        assert await reader.read() == b""
        await eventually(lambda: node.clients[0].closed_times == 1)
        assert blamed == []
        node.server.stop()

    asyncio.run(scenario())
