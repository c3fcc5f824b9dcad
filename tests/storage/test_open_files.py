from __future__ import annotations

import pytest

from heirlog.protocol.types import Uuid
from heirlog.sim.disk import SimDisk
from heirlog.sim.disk_files import SimFile, SimFiles
from heirlog.sim.world import Process, World
from heirlog.storage.atomic import AtomicFile, read_file
from heirlog.storage.config import LogConfig
from heirlog.storage.identity import format_directory
from heirlog.storage.log_directory import FINISHED_AT_ONCE, LogDirectory
from heirlog.storage.open_files import AT_ONCE, OpenFileLimit


class Counted(SimFiles):
    """Knows how many files are open, and how many were at most."""

    def __init__(self, disk: SimDisk, process: Process) -> None:
        super().__init__(disk, process)
        self.opened: list[SimFile] = []
        self.most = 0

    def open(self, path: str, create: bool = False) -> SimFile:
        file = super().open(path, create)
        self.opened.append(file)
        self.most = max(self.most, self.count())
        return file

    def count(self) -> int:
        self.opened = [file for file in self.opened if not file._closed]
        return len(self.opened)


@pytest.fixture
def world() -> World:
    return World(1)


@pytest.fixture
def files(world: World) -> Counted:
    host = world.host("a")
    made = Counted(SimDisk(world, host, world.stream("disk")), world.begin(host))
    made.mkdirs("/d")
    return made


def test_turns_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    limit, begun = OpenFileLimit(2), []
    assert [limit.acquire(lambda n=n: begun.append(n)) for n in range(5)] == [True, True, False, False, False]
    limit.release()
    assert begun == [2]
    limit.release()
    limit.release()
    assert begun == [2, 3, 4]
    for _ in range(2):
        limit.release()
    assert limit.acquire(lambda: None) and limit.acquire(lambda: None) and not limit.acquire(lambda: None)


def test_ten_thousand_that_release_at_once_need_no_deep_stack() -> None:
    limit, begun = OpenFileLimit(1), []

    def at_once() -> None:
        begun.append(1)
        limit.release()

    assert limit.acquire(at_once)
    for _ in range(10_000):
        limit.acquire(at_once)
    limit.release()
    assert len(begun) == 10_000


def test_files_that_share_turns_are_all_written_and_only_few_are_open_at_once(world: World, files: Counted) -> None:
    limit, errors = OpenFileLimit(3), []
    written = [AtomicFile(files, "/d", f"f{n}", limit) for n in range(200)]
    for n, file in enumerate(written):
        file.write(b"old", errors.append)
        file.write(b"%d" % n, errors.append)
    written[7].close()
    world.run_for(100_000)
    assert files.most <= 3 and files.count() == 0
    assert errors == [None] * (2 * 199)
    assert [read_file(files, f"/d/f{n}") for n in range(200) if n != 7] == [b"%d" % n for n in range(200) if n != 7]


def test_a_file_that_cannot_be_written_when_its_turn_comes_says_so_and_holds_nobody_up(
    world: World, files: Counted
) -> None:
    limit, errors = OpenFileLimit(1), {}
    for name in ("/d", "/missing", "/d"):
        file = AtomicFile(files, name, f"f{len(errors)}", limit)
        key = len(errors)
        errors[key] = "waits"
        file.write(b"x", lambda error, key=key: errors.update({key: error}))
    world.run_for(1000)
    assert errors[0] is None and errors[2] is None and isinstance(errors[1], OSError)


def test_a_directory_of_many_logs_opens_few_files_besides_their_segments(world: World, files: Counted) -> None:
    format_directory(files, "/data", "c", 1, Uuid(bytes(16)), lambda error: None)
    world.run_for(100)
    directory = LogDirectory.open(files, "/data", cluster_id="c", node_id=1)
    done: list[OSError | None] = []
    directory.load_logs(lambda topic: LogConfig(), 0, done.append)
    world.run_for(100)
    logs = [directory.create_log("t", n, Uuid(bytes(15) + b"\x07"), LogConfig()) for n in range(1000)]
    for log in logs:
        log.epochs.assign(5, 0)
    assert files.most <= len(logs) + 2 * AT_ONCE
    world.run_for(100_000)
    assert files.count() == len(logs) and all(log.epochs.durable for log in logs)
    files.most = 0
    directory.close_cleanly(1, done.append)
    world.run_for(100_000)
    assert done == [None, None] and files.most <= len(logs) + 4 * FINISHED_AT_ONCE
