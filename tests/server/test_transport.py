"""Frames through real sockets on loopback."""

from __future__ import annotations

import asyncio
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest

import heirlog.server.stream as stream_module
from heirlog.env import Region
from heirlog.protocol.frames import parse_header
from heirlog.protocol.messages import ApiVersionsResponse
from heirlog.server.os_file import OsFile

ANSWER = ApiVersionsResponse()


def echo(client: Any, header: Any, frame: memoryview) -> None:
    client.transport.send(header, ApiVersionsResponse())


def raw(*parts: Any) -> Any:
    """An answer function that writes parts as they are, behind a length."""

    def answer(client: Any, header: Any, frame: memoryview) -> None:
        size = sum(part.size if isinstance(part, Region) else len(part) for part in parts)
        client.transport._stream.write([struct.pack(">ii", size + 4, header.correlation_id), *parts])

    return answer


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(60):
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(size)


def correlation(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")


async def until_written(writer: asyncio.StreamWriter) -> None:
    """Everything is in the sockets, and the loop has had many turns to look."""
    for _ in range(50):
        await asyncio.sleep(0)


async def connect(node: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(node.endpoint.host, node.endpoint.port)


def test_a_small_request_is_answered(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        writer.write(framed(7))
        assert correlation(await read_frame(reader)) == 7
        writer.close()
        node.server.stop()

    asyncio.run(scenario())


def test_pipelined_requests_are_answered_in_their_order_also_far_beyond_one_turn(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        count = 5000
        writer.write(b"".join(framed(n) for n in range(count)))
        assert [correlation(await read_frame(reader)) for _ in range(count)] == list(range(count))
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 13, 14])
def test_a_frame_that_arrives_in_two_pieces_is_one_frame(
    fake_node: Any, framed: Any, eventually: Any, cut: int
) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        both = framed(1, 5) + framed(2, 5)
        at = len(framed(1, 5)) + cut
        writer.write(both[:at])
        await writer.drain()
        assert correlation(await read_frame(reader)) == 1
        writer.write(both[at:])
        assert correlation(await read_frame(reader)) == 2
        assert node.clients[0].frames == [framed(1, 5)[4:], framed(2, 5)[4:]]
        node.server.stop()

    asyncio.run(scenario())


def test_a_large_frame_arrives_whole_and_what_follows_it_too(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        body = os.urandom(5_000_000)
        large = framed(1, len(body))[:14] + body
        writer.write(large + framed(2) + large + framed(3, 40_000))
        assert [correlation(await read_frame(reader)) for _ in range(4)] == [1, 2, 1, 3]
        assert node.clients[0].frames[0] == large[4:]
        assert node.clients[0].frames[2] == large[4:]
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(6))
def test_frames_of_all_sizes_cut_anywhere_arrive_whole_and_in_order(fake_node: Any, framed: Any, seed: int) -> None:
    """Sizes around every limit of the reading: staging, large frames, the little that is read behind one."""

    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        chance = random.Random(seed)
        edges = (0, 3, 4_000, 4_082, 4_096, 16_384, 32_750, 32_768, 65_522, 65_536, 66_000, 262_144, 300_000)
        sizes = [max(0, chance.choice(edges) + chance.randrange(-3, 4)) for _ in range(60)]
        frames = [framed(number, size)[:14] + chance.randbytes(size) for number, size in enumerate(sizes)]
        stream, at = b"".join(frames), 0
        answered = asyncio.ensure_future(answers(reader, len(frames)))
        while at < len(stream):
            count = chance.choice((1, 5, 4_096, 65_536, 500_000))
            writer.write(stream[at : at + count])
            await writer.drain()
            at += count
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        assert await answered == list(range(len(frames)))
        assert [bytes(frame) for frame in node.clients[0].frames] == [frame[4:] for frame in frames]
        node.server.stop()

    asyncio.run(scenario())


async def answers(reader: asyncio.StreamReader, count: int) -> list[int]:
    return [correlation(await read_frame(reader)) for _ in range(count)]


def test_who_has_said_everything_and_still_listens_is_answered(fake_node: Any, framed: Any) -> None:
    async def scenario() -> None:
        node = fake_node(echo)
        reader, writer = await connect(node)
        writer.write(framed(1, 70_000) + framed(2) + framed(3))
        writer.write_eof()
        assert await answers(reader, 3) == [1, 2, 3]
        assert await reader.read() == b""
        node.server.stop()

    asyncio.run(scenario())


def test_a_frame_belongs_to_its_receiver_and_can_be_written_into(fake_node: Any, framed: Any) -> None:
    kept: list[memoryview] = []

    def keep(client: Any, header: Any, frame: memoryview) -> None:
        frame[8:10] = b"xy"
        kept.append(frame)
        echo(client, header, frame)

    async def scenario() -> None:
        node = fake_node(keep)
        reader, writer = await connect(node)
        for n in range(3):
            writer.write(framed(n, 8))
            await read_frame(reader)
        assert [int.from_bytes(frame[4:8], "big") for frame in kept] == [0, 1, 2]
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("length", [-1, 0, 1001])
def test_an_absurd_length_closes_the_connection_with_one_line_in_the_log(
    fake_node: Any, eventually: Any, length: int
) -> None:
    async def scenario() -> None:
        node = fake_node(echo, frame_limit=1000)
        for _ in range(3):
            reader, writer = await connect(node)
            writer.write(struct.pack(">i", length) + b"GET / HTTP/1.1")
            assert await reader.read() == b""
        await eventually(lambda: [client.closed_times for client in node.clients] == [1, 1, 1])
        assert node.events("warning") == ["frame-refused"]
        assert node.server.connection_count == 0
        node.server.stop()

    asyncio.run(scenario())


def test_a_large_region_is_sent_with_sendfile_also_after_its_file_was_closed(
    fake_node: Any, framed: Any, tmp_path: Path, descriptors_of: Any
) -> None:
    content = os.urandom(9_000_000)
    (tmp_path / "log").write_bytes(content)

    def answer(client: Any, header: Any, frame: memoryview) -> None:
        file = OsFile(str(tmp_path / "log"), os.open(tmp_path / "log", os.O_RDWR))
        raw(b"head", Region(file, 1000, 8_000_000), b"between", Region(file, 5, 100), b"tail")(client, header, frame)
        file.close()

    async def scenario() -> None:
        node = fake_node(answer)
        reader, writer = await connect(node)
        for n in range(2):
            writer.write(framed(n))
            expected = b"head" + content[1000:8_001_000] + b"between" + content[5:105] + b"tail"
            assert (await read_frame(reader))[4:] == expected
        writer.close()
        node.server.stop()

    asyncio.run(scenario())
    assert descriptors_of(tmp_path / "log") == 0


@pytest.mark.parametrize(("promised", "received"), [(60_000, 0), (150_000, 50_008)], ids=["read", "sendfile"])
def test_a_file_that_is_shorter_than_promised_ends_the_connection(
    fake_node: Any, framed: Any, tmp_path: Path, eventually: Any, promised: int, received: int
) -> None:
    (tmp_path / "log").write_bytes(bytes(50_000))
    file = OsFile(str(tmp_path / "log"), os.open(tmp_path / "log", os.O_RDWR))

    async def scenario() -> None:
        node = fake_node(raw(Region(file, 0, promised)))
        reader, writer = await connect(node)
        writer.write(framed(1))
        assert len(await reader.read()) == received
        await eventually(lambda: node.clients[0].closed_times == 1)
        node.server.stop()

    asyncio.run(scenario())
    file.close()


def test_who_asks_faster_than_it_reads_is_read_no_further_and_loses_nothing(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    count, size = 2000, 20_000

    async def scenario() -> None:
        node = fake_node(raw(bytes(size)))
        reader, writer = await asyncio.open_connection(node.endpoint.host, node.endpoint.port, limit=1024)
        writer.write(b"".join(framed(n) for n in range(count)))
        await eventually(lambda: node.clients and node.clients[0].transport._stream._throttled)
        served = len(node.clients[0].frames)
        assert served < count
        queued = node.clients[0].transport._stream.queued_bytes
        assert queued <= stream_module.OUTPUT_LIMIT + stream_module.FRAMES_PER_TURN * (size + 8)
        assert [correlation(await read_frame(reader)) for _ in range(count)] == list(range(count))
        node.server.stop()

    asyncio.run(scenario())


def test_a_paused_client_gets_no_frames_until_it_resumes(fake_node: Any, framed: Any, eventually: Any) -> None:
    def pause_at_three(client: Any, header: Any, frame: memoryview) -> None:
        client.paused = len(client.frames) == 3
        echo(client, header, frame)

    async def scenario() -> None:
        node = fake_node(pause_at_three)
        reader, writer = await connect(node)
        writer.write(b"".join(framed(n) for n in range(10)))
        for n in range(3):
            assert correlation(await read_frame(reader)) == n
        writer.write(framed(10))
        await asyncio.sleep(0)
        client = node.clients[0]
        assert len(client.frames) == 3
        client.paused = False
        client.transport.resume()
        assert [correlation(await read_frame(reader)) for _ in range(8)] == list(range(3, 11))
        node.server.stop()

    asyncio.run(scenario())


def test_a_bulk_client_does_not_keep_others_waiting(fake_node: Any, framed: Any) -> None:
    """While one client has thousands of requests in the socket, another's is served within a few turns."""
    order: list[int] = []

    def note(client: Any, header: Any, frame: memoryview) -> None:
        order.append(header.correlation_id)
        echo(client, header, frame)

    async def scenario() -> None:
        node = fake_node(note)
        _, bulk = await connect(node)
        reader, single = await connect(node)
        bulk.write(b"".join(framed(0) for _ in range(3000)))
        single.write(framed(1))
        await read_frame(reader)
        assert order.index(1) <= 10 * stream_module.FRAMES_PER_TURN
        node.server.stop()

    asyncio.run(scenario())


def test_closing_sends_what_is_queued_and_tells_the_client_once(fake_node: Any, framed: Any, eventually: Any) -> None:
    def answer_and_close(client: Any, header: Any, frame: memoryview) -> None:
        raw(bytes(8_000_000))(client, header, frame)
        client.transport.close()
        client.transport.close()
        assert client.closed_times == 0, "never within a call"

    async def scenario() -> None:
        node = fake_node(answer_and_close)
        reader, writer = await connect(node)
        writer.write(framed(1) + framed(2))
        assert len(await read_frame(reader)) == 8_000_004
        assert await reader.read() == b""
        await eventually(lambda: node.clients[0].closed_times == 1)
        assert len(node.clients[0].frames) == 1
        node.server.stop()

    asyncio.run(scenario())


def test_a_client_that_goes_away_is_told_to_the_node_once(fake_node: Any, framed: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = fake_node(raw(bytes(10_000_000)))
        _, writer = await connect(node)
        writer.write(framed(1) + framed(2))
        await eventually(lambda: node.clients and node.clients[0].frames)
        writer.transport.abort()
        await eventually(lambda: node.clients[0].closed_times)
        await asyncio.sleep(0)
        assert node.clients[0].closed_times == 1
        node.server.stop()

    asyncio.run(scenario())


def test_a_client_that_never_reads_is_closed_after_the_idle_time(fake_node: Any, framed: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = fake_node(raw(bytes(10_000_000)), max_idle_ms=50)
        _, writer = await asyncio.open_connection(node.endpoint.host, node.endpoint.port, limit=1024)
        writer.write(framed(1))
        await eventually(lambda: node.clients and node.clients[0].closed_times == 1)
        node.server.stop()

    asyncio.run(scenario())


def test_a_handler_that_raises_ends_its_connection_and_no_other(fake_node: Any, framed: Any, eventually: Any) -> None:
    def raise_at_nine(client: Any, header: Any, frame: memoryview) -> None:
        if header.correlation_id == 9:
            raise RuntimeError("nine")
        echo(client, header, frame)

    async def scenario() -> None:
        node = fake_node(raise_at_nine)
        reader, writer = await connect(node)
        other_reader, other = await connect(node)
        writer.write(framed(9))
        assert await reader.read() == b""
        other.write(framed(1))
        assert correlation(await read_frame(other_reader)) == 1
        assert node.events("error") == ["request-failed"]
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("together", [True, False])
def test_a_pause_at_any_time_lets_nothing_more_through_until_it_ends(
    fake_node: Any, framed: Any, eventually: Any, together: bool
) -> None:
    """Also what has been received already, and half of a large frame."""

    async def scenario() -> None:
        node = fake_node(lambda client, header, frame: None)
        reader, writer = await connect(node)
        writer.write(framed(1))
        await eventually(lambda: node.clients and len(node.clients[0].frames) == 1)
        client = node.clients[0]
        large = framed(2, 500_000)
        if together:
            writer.write(large[:100_000])
            await eventually(lambda: client.transport._stream._filled)
        client.transport.pause()
        client.transport.pause()
        writer.write((large[100_000:] if together else large) + framed(3) + framed(4))
        node.server.loop.call_soon(client.transport.send, parse_header(memoryview(framed(1)[4:]))[0], ANSWER)
        assert correlation(await read_frame(reader)) == 1, "answers leave meanwhile"
        await until_written(writer)
        assert len(client.frames) == 1
        client.transport.resume()
        await eventually(lambda: len(client.frames) == 4)
        assert client.frames[1:] == [large[4:], framed(3)[4:], framed(4)[4:]]
        node.server.stop()

    asyncio.run(scenario())


def test_a_pause_within_a_turn_keeps_what_was_read_in_it(fake_node: Any, framed: Any, eventually: Any) -> None:
    async def scenario() -> None:
        node = fake_node(lambda client, header, frame: client.transport.pause() if header.correlation_id == 2 else None)
        _, writer = await connect(node)
        writer.write(b"".join(framed(number) for number in range(6)))
        await eventually(lambda: node.clients and len(node.clients[0].frames) == 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(node.clients[0].frames) == 3
        node.clients[0].transport.resume()
        await eventually(lambda: len(node.clients[0].frames) == 6)
        node.server.stop()

    asyncio.run(scenario())
