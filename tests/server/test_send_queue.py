"""What waits to be sent: bytes and parts of files, in their order."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from heirlog.env import Region
from heirlog.server.files import OsFiles
from heirlog.server.os_file import OsFile
from heirlog.server.send_queue import INLINE_REGION, RegionGone, SendQueue

LARGE = INLINE_REGION + 1


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.settimeout(30)
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def file(tmp_path: Path) -> OsFile:
    found = OsFiles(lambda function: None).open(f"{tmp_path}/f", create=True)
    found.append(bytes(range(256)) * (LARGE // 256 + 1))
    return found


def test_bytes_and_parts_of_files_leave_in_their_order(ends: tuple[socket.socket, socket.socket], file: OsFile) -> None:
    queue, got = SendQueue(ends[0]), b""
    queue.add(memoryview(b"head"))
    queue.add_region(Region(file, 1, 3))
    queue.add_region(Region(file, 0, LARGE))
    queue.add(memoryview(b"tail"))
    whole = b"head\x01\x02\x03" + file.pread(LARGE, 0) + b"tail"
    assert queue.size == len(whole)
    while queue.parts:
        queue.send()
        got += ends[1].recv(1 << 20)
    while len(got) < len(whole):
        got += ends[1].recv(1 << 20)
    assert (got, queue.size) == (whole, 0)


def test_a_part_that_waits_holds_its_file_until_it_is_sent_or_given_up(
    ends: tuple[socket.socket, socket.socket], file: OsFile
) -> None:
    queue = SendQueue(ends[0])
    queue.add_region(Region(file, 0, LARGE))
    assert queue.reading == file.path
    file.close()
    assert file.fileno() >= 0, "the peer has not taken it"
    queue.clear()
    assert (file.fileno(), queue.size) == (-1, 0)
    with pytest.raises(RegionGone, match="a log was removed"):
        queue.add_region(Region(file, 0, 10))


@pytest.mark.parametrize("size", [100, LARGE], ids=["copied", "sendfile"])
def test_a_file_that_we_have_cut_since_ends_the_connection_and_not_the_disk(
    ends: tuple[socket.socket, socket.socket], file: OsFile, size: int
) -> None:
    queue = SendQueue(ends[0])
    file.truncate(50)
    with pytest.raises(RegionGone, match="is shorter than the answer"):
        queue.add_region(Region(file, 0, size))
        while queue.parts:
            queue.send()
            ends[1].recv(1 << 20)


def test_what_was_appended_last_is_sent_from_memory_and_all_else_is_read(
    ends: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFiles(lambda function: None).open(f"{tmp_path}/g", create=True)
    file.append(b"older")
    file.append(bytearray(b"newest"))
    read: list[tuple[int, int]] = []

    def pread(of: OsFile, size: int, position: int) -> bytes:
        read.append((size, position))
        return os.pread(of.fileno(), size, position)

    monkeypatch.setattr(OsFile, "pread", pread)
    queue = SendQueue(ends[0])
    for size, position in ((6, 5), (5, 0), (5, 5), (5, 6), (11, 0)):
        queue.add_region(Region(file, position, size))
    queue.send()
    assert ends[1].recv(100) == b"newestoldernewesewestoldernewest"
    assert read == [(5, 0), (5, 5), (5, 6), (11, 0)]
