"""Readers and writers that the selector calls itself."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import heirlog.server.event_loop as event_loop
from heirlog.server.event_loop import new_event_loop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a node runs on asyncio's own loop")

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = new_event_loop()
    yield made
    made.close()


@pytest.fixture
def pairs() -> Iterator[Callable[[int], list[Pair]]]:
    made: list[Pair] = []

    def connected(count: int) -> list[Pair]:
        for _ in range(count):
            made.append(socket.socketpair())
            for end in made[-1]:
                end.setblocking(False)
        return made

    yield connected
    for pair in made:
        for end in pair:
            end.close()


def run(loop: asyncio.AbstractEventLoop, until: Callable[[], object]) -> None:
    async def wait() -> None:
        async with asyncio.timeout(60):
            while not until():
                await asyncio.sleep(0.001)

    loop.run_until_complete(wait())


def test_what_owners_call_soon_runs_after_all_owners_that_are_ready_and_before_the_next_poll(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    seen: list[str] = []

    def ready(number: int, end: socket.socket) -> None:
        seen.append(f"owner {end.recv(1).decode()}")
        loop.call_soon(seen.append, "soon")
        if number == 0:
            again[1].send(b"2")  # ready from now on: the next poll finds it

    one, two, again = pairs(3)
    for number, (ours, theirs) in enumerate((one, two)):
        loop.add_reader(ours.fileno(), ready, number, ours)
        theirs.send(str(number).encode())
    loop.add_reader(again[0].fileno(), ready, 2, again[0])
    run(loop, lambda: len(seen) == 6)
    assert sorted(seen[:2]) == ["owner 0", "owner 1"]
    assert seen[2:] == ["soon", "soon", "owner 2", "soon"]


def test_an_owner_that_another_one_removed_in_the_same_turn_is_not_called(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    called: list[int] = []

    def ready(number: int) -> None:
        called.append(number)
        for ours, _ in ends:
            loop.remove_reader(ours.fileno())
            ours.close()

    ends = pairs(2)
    for number, (ours, theirs) in enumerate(ends):
        loop.add_reader(ours.fileno(), ready, number)
        theirs.send(b"x")
    turns = 0

    def count_turns() -> bool:
        nonlocal turns
        turns += 1
        return turns > 20

    run(loop, count_turns)
    assert len(called) == 1


def test_an_owner_that_fails_is_reported_and_the_others_are_called(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    failures: list[dict[str, Any]] = []
    called: list[int] = []
    loop.set_exception_handler(lambda of, context: failures.append(context))

    def ready(number: int, end: socket.socket) -> None:
        end.recv(1)
        called.append(number)
        if number % 2 == 0:
            raise RuntimeError(f"owner {number}")

    for number, (ours, theirs) in enumerate(pairs(4)):
        loop.add_reader(ours.fileno(), ready, number, ours)
        theirs.send(b"x")
    run(loop, lambda: len(called) == 4)
    assert sorted(str(failure["exception"]) for failure in failures) == ["owner 0", "owner 2"]


def test_keyboard_interrupts_end_the_loop(loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    ((ours, theirs),) = pairs(1)
    loop.add_reader(ours.fileno(), interrupted)
    theirs.send(b"x")
    with pytest.raises(KeyboardInterrupt):
        loop.run_forever()


def test_reading_and_writing_of_one_socket_begin_and_end_apart(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    ((ours, theirs),) = pairs(1)
    seen: list[str] = []
    fd = ours.fileno()

    def writable() -> None:
        seen.append("w")
        loop.remove_writer(fd)

    def readable() -> None:
        seen.append(ours.recv(1).decode())

    loop.add_reader(fd, readable)
    loop.add_writer(fd, writable)
    run(loop, lambda: seen)
    assert seen == ["w"]
    assert not loop.remove_writer(fd), "it is gone"
    theirs.send(b"r")
    run(loop, lambda: len(seen) == 2)
    loop.add_writer(fd, writable)
    assert loop.remove_reader(fd)
    theirs.send(b"r")
    run(loop, lambda: len(seen) == 3)
    assert seen == ["w", "r", "w"]
    assert not loop.remove_reader(fd)


def test_a_socket_that_has_the_number_of_one_that_was_closed_is_watched(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    ((ours, theirs),) = pairs(1)
    seen: list[str] = []
    forgotten = socket.socketpair()
    number = forgotten[0].fileno()
    loop.add_reader(number, seen.append, "forgotten")
    forgotten[0].close()
    os.dup2(ours.fileno(), number)
    loop.add_reader(number, lambda: seen.append(os.read(number, 1).decode()))
    theirs.send(b"r")
    run(loop, lambda: seen)
    assert seen == ["r"]
    assert loop.remove_reader(number)
    os.close(number)
    forgotten[1].close()


def test_a_descriptor_that_cannot_be_watched_has_no_reader_afterwards(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    with (tmp_path / "file").open("w") as file:
        with pytest.raises(PermissionError):
            loop.add_reader(file.fileno(), print)
        assert not loop.remove_reader(file.fileno())


def test_a_descriptor_may_be_closed_before_it_is_forgotten(loop: asyncio.AbstractEventLoop) -> None:
    ours, theirs = socket.socketpair()
    number = ours.fileno()
    loop.add_reader(number, print)
    ours.close()
    theirs.close()
    assert loop.remove_reader(number)


def test_a_connection_that_asyncio_makes_may_be_closed_before_it_is_there(loop: asyncio.AbstractEventLoop) -> None:
    failed: list[object] = []
    loop.set_exception_handler(lambda _, found: failed.append(found))
    listening = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = [socket.socket() for _ in range(6)]

    async def scenario() -> None:
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        late = socket.socket()
        late.setblocking(False)
        connecting = loop.create_task(loop.sock_connect(late, listening.getsockname()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not connecting.done(), "there is no room for it"
        late.close()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await asyncio.sleep(0)

    loop.run_until_complete(scenario())
    for one in (*waiting, listening):
        one.close()
    assert failed == []


def test_a_peer_that_is_gone_wakes_reader_and_writer(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]]
) -> None:
    ((ours, theirs),) = pairs(1)
    seen: set[str] = set()
    loop.add_reader(ours.fileno(), seen.add, "reader")
    loop.add_writer(ours.fileno(), seen.add, "writer")
    theirs.close()
    run(loop, lambda: seen == {"reader", "writer"})


def test_every_owner_gets_its_turn_also_if_more_are_ready_than_one_poll_names(
    loop: asyncio.AbstractEventLoop, pairs: Callable[[int], list[Pair]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "EVENTS_PER_POLL", 2)
    seen: set[int] = set()
    for number, (ours, theirs) in enumerate(pairs(20)):
        loop.add_reader(ours.fileno(), seen.add, number)  # always ready: nothing is read
        theirs.send(b"x")
    run(loop, lambda: seen == set(range(20)))


def test_what_asyncio_watches_itself_works_as_ever(loop: asyncio.AbstractEventLoop) -> None:
    """Connections, other threads, signals, and timers, with an owner in between."""
    seen: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)

    async def scenario() -> None:
        accepted = loop.create_task(loop.sock_accept(listening))
        client = socket.socket()
        client.setblocking(False)
        await loop.sock_connect(client, listening.getsockname())
        loop.add_reader(client.fileno(), lambda: seen.append(client.recv(10).decode()))
        server, _ = await accepted
        await loop.sock_sendall(server, b"hello")
        loop.add_signal_handler(signal.SIGUSR1, seen.append, "signal")
        os.kill(os.getpid(), signal.SIGUSR1)
        thread = threading.Thread(target=loop.call_soon_threadsafe, args=(seen.append, "thread"))
        thread.start()
        began = loop.time()
        loop.call_later(0.03, lambda: seen.append("early" if loop.time() - began < 0.029 else "timer"))
        async with asyncio.timeout(60):
            while len(seen) < 4:
                await asyncio.sleep(0.001)
        thread.join()
        loop.remove_signal_handler(signal.SIGUSR1)
        loop.remove_reader(client.fileno())
        client.close()
        server.close()

    with listening:
        loop.run_until_complete(scenario())
    assert sorted(seen) == ["hello", "signal", "thread", "timer"]


def test_a_closed_loop_watches_nothing(pairs: Callable[[int], list[Pair]]) -> None:
    loop = new_event_loop()
    ((ours, _),) = pairs(1)
    loop.add_reader(ours.fileno(), print)
    loop.close()
    assert not loop.remove_reader(ours.fileno())
