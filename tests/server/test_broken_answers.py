"""Answers that cannot be given: a handler that raises later, a file that cannot be read while it is sent."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from heirlog.env import Region
from heirlog.protocol.frames import RequestHeader
from heirlog.protocol.messages import FetchResponse
from heirlog.server import send_queue

FETCH, VERSION = 1, 12


class Unreadable:
    path = "/data/t-0/0.log"
    size = 1 << 20
    recent = None
    recent_at = 0

    def pread(self, size: int, position: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error", self.path)

    def hold(self) -> None:
        pass

    def release(self) -> None:
        pass


def test_a_held_handler_that_raises_ends_its_connection_and_not_its_caller(
    fake_node: Any, framed: Any, eventually: Any
) -> None:
    async def scenario() -> None:
        node = fake_node(lambda client, header, frame: None)
        reader, writer = await asyncio.open_connection(node.endpoint.host, node.endpoint.port)
        writer.write(framed(1))
        await eventually(lambda: node.clients and node.clients[0].frames)

        def handler() -> None:
            raise RuntimeError("late")

        node.clients[0].transport.run(handler)
        assert await reader.read() == b""
        assert node.events("error") == ["request-failed"]
        node.server.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [100, send_queue.INLINE_REGION + 1], ids=["copied", "sendfile"])
def test_a_region_that_cannot_be_read_closes_the_connection_and_the_node_is_told_which_file(
    fake_node: Any, framed: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    received: list[tuple[str, OSError]] = []
    file: Any = Unreadable()

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    def answer(client: Any, header: RequestHeader, frame: memoryview) -> None:
        client.read_failed = lambda path, error: received.append((path, error))
        partition = FetchResponse.PartitionData(partition_index=0, records=[Region(file, 0, size)])
        topics = [FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])]
        client.transport.send(RequestHeader(FETCH, VERSION, 1, "test"), FetchResponse(responses=topics))
        assert not received, "never within the call"

    async def scenario() -> None:
        node = fake_node(answer)
        with open(__file__, "rb") as real:
            file.fileno = real.fileno
            monkeypatch.setattr(send_queue.os, "sendfile", fail)
            reader, writer = await asyncio.open_connection(node.endpoint.host, node.endpoint.port)
            writer.write(framed(1))
            await reader.read()
            await eventually(lambda: received)
        assert received[0][0] == file.path and received[0][1].errno == errno.EIO
        node.server.stop()

    asyncio.run(scenario())
