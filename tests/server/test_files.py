"""Files on the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import heirlog.server.files as files_module
from heirlog.server.files import RECENT_APPENDS, RECENT_BYTES, RECENT_SHARE, OsFile, OsFiles


class Inbox:
    """What a loop does with functions from other threads, when the test says so."""

    def __init__(self) -> None:
        self._functions: list[object] = []
        self._arrived = threading.Condition()

    def __call__(self, function: object) -> None:
        with self._arrived:
            self._functions.append(function)
            self._arrived.notify()

    def run(self, count: int = 1) -> None:
        """Wait for `count` deliveries and run them."""
        for _ in range(count):
            with self._arrived:
                assert self._arrived.wait_for(lambda: self._functions, 60)
                function = self._functions.pop(0)
            assert callable(function)
            function()


def test_the_start_of_the_machine_has_a_name_that_stays() -> None:
    other = subprocess.run(
        [sys.executable, "-c", "from heirlog.server.boot_id import read_boot_id; print(read_boot_id())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert OsFiles(Inbox()).boot_id == other.stdout.strip() != ""


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def files(inbox: Inbox) -> OsFiles:
    return OsFiles(inbox)


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


def test_a_file_that_is_not_there_is_not_made_unasked(files: OsFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(f"{tmp_path}/f")


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


def test_flushes_asked_meanwhile_share_the_next_one(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        flushed.append(fd)
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(files_module, "sync_data", slow)
    a, b = files.open(f"{tmp_path}/a", create=True), files.open(f"{tmp_path}/b", create=True)
    answers: list[str] = []
    files.flush(a, lambda error: answers.append("a1"))
    assert begun.wait(60)
    for name in ("a2", "a3"):
        files.flush(a, lambda error, name=name: answers.append(name))  # type: ignore[misc]
    files.flush(b, lambda error: answers.append("b1"))
    go_on.set()
    inbox.run(3)
    assert answers == ["a1", "a2", "a3", "b1"]
    assert flushed == [a.fileno(), a.fileno(), b.fileno()]
    files.stop()


def flushed_while_another_flush_lasts(
    files: OsFiles, inbox: Inbox, tmp_path: Path, sync: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, OSError | None]]:
    """Forty files, so all of them are found at once; how each was answered, in order."""
    begun, go_on = threading.Event(), threading.Event()
    first = files.open(f"{tmp_path}/first", create=True)

    def waits(fd: int) -> None:
        if fd != first.fileno():
            sync(fd)
            return
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(files_module, "sync_data", waits)
    files.flush(first, lambda error: None)
    assert begun.wait(60)
    answers: list[tuple[int, OSError | None]] = []
    for number in range(40):
        file = files.open(f"{tmp_path}/{number}", create=True)
        files.flush(file, lambda error, number=number: answers.append((number, error)))  # type: ignore[misc]
    go_on.set()
    inbox.run(41)
    files.stop()
    return answers


def test_many_flushes_are_in_the_kernel_at_the_same_time(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2, timeout=60)
    failed: list[int] = []

    def sync(fd: int) -> None:
        together.wait()  # breaks, unless two threads are here
        if fd % 4 == 0:
            failed.append(fd)
            raise OSError(5, "Input/output error")

    answers = flushed_while_another_flush_lasts(files, inbox, tmp_path, sync, monkeypatch)
    assert sorted(number for number, _ in answers) == list(range(40))
    assert sum(error is not None for _, error in answers) == len(failed) > 0, "each file has its own answer"


def test_without_further_threads_one_flushes_everything(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if "helper" in thread.name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    answers = flushed_while_another_flush_lasts(files, inbox, tmp_path, lambda fd: None, monkeypatch)
    assert answers == [(number, None) for number in range(40)]


def test_a_failed_flush_is_final_for_its_file(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def fail(fd: int) -> None:
        asked.append(fd)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(files_module, "sync_data", fail)
    file = files.open(f"{tmp_path}/f", create=True)
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    inbox.run()
    files.flush(file, answers.append)
    inbox.run()
    assert [error.errno if error else None for error in answers] == [5, 5]
    assert len(asked) == 1
    files.stop()


def test_a_file_closed_during_its_flush_keeps_its_descriptor_until_the_answer(
    files: OsFiles, inbox: Inbox, tmp_path: Path
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(b"x")
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    file.close()
    fd = file.fileno()
    os.fstat(fd)
    inbox.run()
    assert answers == [None]
    with pytest.raises(OSError):
        os.fstat(fd)
    files.stop()


def test_a_directory_is_synced_or_its_error_is_told(files: OsFiles, inbox: Inbox, tmp_path: Path) -> None:
    answers: list[OSError | None] = []
    files.sync_dir(str(tmp_path), answers.append)
    inbox.run()
    files.sync_dir(f"{tmp_path}/nowhere", answers.append)
    inbox.run()
    assert answers[0] is None
    assert isinstance(answers[1], FileNotFoundError)
    files.stop()


def test_nobody_is_told_once_the_node_has_stopped(files: OsFiles, inbox: Inbox, tmp_path: Path) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    files.silence()
    inbox.run()
    files.stop()
    assert answers == []


def test_names_are_listed_sorted_and_trees_removed_whole(files: OsFiles, tmp_path: Path) -> None:
    files.mkdirs(f"{tmp_path}/d/e")
    for name in ("b", "a"):
        files.open(f"{tmp_path}/d/{name}", create=True).close()
    assert files.list(f"{tmp_path}/d") == ["a", "b", "e"]
    assert files.is_dir(f"{tmp_path}/d") and not files.is_dir(f"{tmp_path}/d/a")
    assert files.modified_ms(f"{tmp_path}/d/a") > 1_600_000_000_000
    files.rename(f"{tmp_path}/d/a", f"{tmp_path}/d/b")
    files.unlink(f"{tmp_path}/d/b")
    files.rmdir(f"{tmp_path}/d")
    assert not files.exists(f"{tmp_path}/d")
    with pytest.raises(FileNotFoundError):
        files.list(f"{tmp_path}/d")


def test_a_renamed_file_stays_usable(files: OsFiles, tmp_path: Path) -> None:
    file: OsFile = files.open(f"{tmp_path}/a", create=True)
    file.append(b"1")
    files.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    file.append(b"2")
    assert (tmp_path / "b").read_bytes() == b"12"
    file.close()


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
        patched.setattr(files_module.os, "pwrite", fail)
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
