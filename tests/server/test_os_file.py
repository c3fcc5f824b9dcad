"""One file on the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from server.inbox import Inbox

from heirlog.server import os_file
from heirlog.server.files import OsFiles
from heirlog.server.os_file import RECENT_APPENDS, RECENT_BYTES, RECENT_SHARE


def test_appends_and_reads_take_their_positions(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    assert file.append(b"abc") == 0
    assert file.append([b"de", bytearray(b"f"), memoryview(b"gh")]) == 3
    assert file.append([]) == 8
    assert file.append(b"") == 8
    assert file.size == 8
    assert file.pread(100, 2) == b"cdefgh"
    file.pwrite(b"XY", 1)
    file.truncate(4)
    assert file.append([b"!"]) == 4
    assert file.pread(100, 0) == b"aXYd!"
    file.close()
    again = files.open(f"{tmp_path}/f")
    assert again.size == 5
    again.close()


def test_more_parts_than_one_system_call_takes_arrive_in_order(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    parts = [b"%05d" % n for n in range(3000)]
    file.append([b"", *parts, b""])
    assert file.pread(100_000, 0) == b"".join(parts)
    file.close()


def test_a_read_that_the_system_cuts_short_is_continued(
    files: OsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(b"0123456789")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, position: pread(fd, min(size, 4), position))
    assert file.pread(9, 1) == file.pread(100, 1) == b"123456789"
    os.truncate(file.path, 6)
    with pytest.raises(OSError, match="shorter than what was written"):
        file.pread(9, 1)
    file.close()


@pytest.mark.parametrize("data", ["bytes(600)", "[bytes(300), bytes(300)]"])
def test_a_failed_append_leaves_the_length_unchanged(tmp_path: Path, data: str) -> None:
    """A file size limit stands for a full disk: the first bytes still fit, the rest does not."""
    child = f"""
import resource
from heirlog.server.files import OsFiles
file = OsFiles(print).open({str(tmp_path / "f")!r}, create=True)
file.append(bytes(500))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    file.append({data})
except OSError as error:
    assert file.size == 500, file.size
    assert file.append(bytes(500)) == 500
    print("refused", error.errno)
"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, env=environment())
    assert done.stdout.startswith("refused"), done.stderr
    assert os.path.getsize(tmp_path / "f") == 1000


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_a_failed_flush_is_final_for_its_file(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fail(fd: int) -> None:
        asked.append(fd)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os_file, "sync_data", fail)
    file = files.open(f"{tmp_path}/f", create=True)
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    inbox.run()
    files.flush(file, answers.append)
    inbox.run()
    assert [error.errno if error else None for error in answers] == [5, 5]
    assert len(asked) == 1
    files.stop()


def test_a_file_that_somebody_else_has_cut_is_an_error_and_no_short_read(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(str(tmp_path / "log"), create=True)
    file.append(b"x" * 100)
    os.truncate(tmp_path / "log", 40)
    assert file.pread(40, 0) == b"x" * 40
    for size, position in ((50, 0), (10, 60)):
        with pytest.raises(OSError, match="shorter than what was written"):
            file.pread(size, position)
    file.truncate(40)
    assert file.pread(50, 0) == b"x" * 40, "what we cut ourselves is the end of the file"
    file.close()


def test_the_last_append_is_kept_until_the_file_changes_in_another_way(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(b"older")
    frame = bytearray(b"headnewest")
    file.append(memoryview(frame)[4:])
    assert (file.recent, file.recent_at) == (b"newest", 5)
    assert file.recent is not None and file.recent.obj is frame, "it is not copied"
    for change in (
        lambda: file.truncate(5),
        lambda: file.pwrite(b"x", 0),
        lambda: file.append([b"in", b"parts"]),
        lambda: file.append(bytes(RECENT_BYTES + 1)),
        file.close,
    ):
        file.append(b"again")
        assert file.recent == b"again"
        change()
        assert file.recent is None


@pytest.mark.parametrize(("append", "kept"), [(10, True), (9, False), (0, False)])
def test_a_small_append_that_would_keep_a_large_buffer_is_not_kept(
    files: OsFiles, tmp_path: Path, append: int, kept: bool
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(memoryview(bytes(RECENT_SHARE * 10))[:append])
    assert (file.recent is not None) is kept


def test_an_append_that_fails_leaves_what_was_kept(
    files: OsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(b"first")

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os_file.os, "pwrite", fail)
        with pytest.raises(OSError, match="No space"):
            file.append(b"second")
    assert (file.recent, file.recent_at, file.pread(100, 0)) == (b"first", 0, b"first")


def test_the_last_appends_of_a_few_files_are_kept(files: OsFiles, tmp_path: Path) -> None:
    opened = [files.open(f"{tmp_path}/{number}", create=True) for number in range(RECENT_APPENDS + 2)]
    for file in opened:
        file.append(b"x")
    assert [file.recent for file in opened] == [None, None, *[b"x"] * RECENT_APPENDS]
    opened[0].append(b"y")
    assert [file.recent for file in opened[:4]] == [b"y", None, None, b"x"]
    opened[5].close()
    opened[1].append(b"y")
    assert opened[3].recent == b"x", "the closed file has made room"
