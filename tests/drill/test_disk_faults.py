"""Disks that become full or slow: `OsFiles` semantics with the switch on and off."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from heirlog.drill.disk_faults import NAME, DiskSwitch, FaultyFiles
from heirlog.drill.faulty_node import main

Inbox = SimpleQueue[Callable[[], None]]


@pytest.fixture
def switch(tmp_path: Path) -> DiskSwitch:
    return DiskSwitch(tmp_path / NAME)


@pytest.fixture
def inbox() -> Inbox:
    return SimpleQueue()


@pytest.fixture
def files(tmp_path: Path, inbox: Inbox, switch: DiskSwitch) -> Iterator[FaultyFiles]:
    (tmp_path / "data").mkdir()
    # another map of the file, as in another process
    files = FaultyFiles(inbox.put, str(tmp_path / "ledger"), DiskSwitch(tmp_path / NAME))
    yield files
    files.stop()


def test_a_disk_is_full_at_the_first_write_that_does_not_fit(
    files: FaultyFiles, switch: DiskSwitch, tmp_path: Path
) -> None:
    file = files.open(str(tmp_path / "data/log"), create=True)
    switch.fill(10)
    assert file.append(b"12345") == 0
    with pytest.raises(OSError) as full:
        file.append([b"123", b"456"])
    assert full.value.errno == errno.ENOSPC and full.value.filename == file.path
    with pytest.raises(OSError):
        file.append(b"1")
    assert file.size == 5 and Path(file.path).read_bytes() == b"12345"
    assert files.space(str(tmp_path))[1] == 0


def test_a_full_disk_makes_no_files_and_folders_and_opens_those_that_are_there(
    files: FaultyFiles, switch: DiskSwitch, tmp_path: Path
) -> None:
    files.open(str(tmp_path / "data/log"), create=True).close()
    switch.fill(0)
    with pytest.raises(OSError):
        files.open(str(tmp_path / "data/new"), create=True)
    with pytest.raises(OSError):
        files.mkdirs(str(tmp_path / "data/folder"))
    files.mkdirs(str(tmp_path / "data"))
    files.open(str(tmp_path / "data/log"), create=True).close()
    switch.repair()
    files.mkdirs(str(tmp_path / "data/folder"))
    assert files.open(str(tmp_path / "data/new"), create=True).append(b"fits") == 0


def test_a_slow_disk_takes_longer_for_calls_and_flushes(
    files: FaultyFiles, switch: DiskSwitch, tmp_path: Path, inbox: Inbox
) -> None:
    file = files.open(str(tmp_path / "data/log"), create=True)
    switch.slow(call_ms=30, flush_ms=60)
    began_s = time.monotonic()
    file.append(b"1")
    file.pread(1, 0)
    assert time.monotonic() - began_s >= 0.06
    began_s = time.monotonic()
    errors: list[OSError | None] = []
    files.flush(file, errors.append)
    inbox.get(timeout=60)()
    assert errors == [None] and time.monotonic() - began_s >= 0.06


def test_the_node_wants_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", "server.properties"]) == 2
    assert "heirlog drill chaos" in capsys.readouterr().err
