"""More files in use than descriptors."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heirlog.server import os_file
from heirlog.server.descriptors import LOOKED_AT
from heirlog.server.files import OsFiles
from heirlog.server.os_file import OsFile

LIMIT = 4


class Loop:
    """Functions from other threads wait until the test runs them."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, function: Callable[[], None]) -> None:
        self.waiting.append(function)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def files(loop: Loop) -> OsFiles:
    return OsFiles(loop, LIMIT)


def run_flushes(files: OsFiles, loop: Loop) -> None:
    files.stop()
    while loop.waiting:
        loop.waiting.pop(0)()


def opened(files: OsFiles, tmp_path: Path, count: int, content: bytes = b"") -> list[OsFile]:
    found = []
    for number in range(count):
        file = files.open(f"{tmp_path}/{number}", create=True)
        if content:
            file.append(content)
        found.append(file)
    return found


def is_open(file: OsFile) -> bool:
    return not file.is_parked


def test_empty_files_are_parked_and_opened_again_when_they_are_used(files: OsFiles, tmp_path: Path) -> None:
    many = opened(files, tmp_path, 50)
    assert sum(map(is_open, many)) <= LIMIT
    for number, file in enumerate(many):
        assert file.append(b"%05d" % number) == 0
        assert file.pread(10, 0) == b"%05d" % number


def test_the_files_that_are_used_stay_open(files: OsFiles, tmp_path: Path) -> None:
    first, second, *_ = opened(files, tmp_path, 2)
    for number in range(30):
        files.open(f"{tmp_path}/other-{number}", create=True)
        first.pread(1, 0)
    assert is_open(first) and not is_open(second)


def test_a_file_with_unflushed_bytes_is_flushed_before_it_is_parked(
    files: OsFiles, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    sync = os_file.sync_data
    monkeypatch.setattr(os_file, "sync_data", lambda fd: (flushed.append(os.fstat(fd).st_ino), sync(fd)))
    written = opened(files, tmp_path, LIMIT + 1, b"x")
    inodes = [os.stat(file.path).st_ino for file in written]
    for number in range(LIMIT):
        files.open(f"{tmp_path}/other-{number}", create=True)
    run_flushes(files, loop)
    parked = [inode for file, inode in zip(written, inodes, strict=True) if not is_open(file)]
    assert parked
    assert set(parked) <= set(flushed)
    assert [file.pread(9, 0) for file in written] == [b"x"] * len(written)


def test_a_file_that_another_process_has_written_is_flushed_too(files: OsFiles, tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"from before")
    old = files.open(f"{tmp_path}/old")
    assert old.at_risk


def test_bytes_written_during_a_flush_are_at_risk_after_it(
    files: OsFiles, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open(f"{tmp_path}/f", create=True)
    file.append(b"a")
    monkeypatch.setattr(os_file, "sync_data", lambda fd: file.append(b"b"))
    files.flush(file, lambda error: None)
    run_flushes(files, loop)
    assert file.at_risk


def test_above_the_second_limit_a_file_is_flushed_at_once(files: OsFiles, tmp_path: Path) -> None:
    many = opened(files, tmp_path, 200, b"x")
    assert sum(map(is_open, many)) <= LIMIT + LIMIT // 2 + LOOKED_AT
    assert all(file.pread(9, 0) == b"x" for file in many)
    files.stop()


def test_a_file_whose_flush_has_failed_is_not_parked_and_says_so_again(
    files: OsFiles, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    bad = files.open(f"{tmp_path}/bad", create=True)
    bad.append(b"x")
    monkeypatch.setattr(os_file, "sync_data", fail)
    assert bad.flush_now() is not None
    monkeypatch.undo()
    opened(files, tmp_path, 50)
    assert is_open(bad)
    answers: list[OSError | None] = []
    files.flush(bad, answers.append)
    run_flushes(files, loop)
    assert [error.errno if error else None for error in answers] == [errno.EIO]


def test_a_parked_file_is_flushed_through_a_descriptor_of_its_own(files: OsFiles, loop: Loop, tmp_path: Path) -> None:
    many = opened(files, tmp_path, 50)
    answers: list[OSError | None] = []
    for file in many:
        files.flush(file, answers.append)
    assert sum(map(is_open, many)) <= LIMIT, "none is opened for it by the loop"
    run_flushes(files, loop)
    assert answers == [None] * 50


def test_where_flushes_hold_every_file_the_next_one_waits_for_them(files: OsFiles, loop: Loop, tmp_path: Path) -> None:
    """As at the stop of a node, which flushes all its logs."""
    answers: list[int] = []
    many = []
    for number in range(200):
        file = files.open(f"{tmp_path}/{number}", create=True)
        file.append(b"x")
        files.flush(file, lambda error, number=number: answers.append(number))  # type: ignore[misc]
        many.append(file)
        assert sum(map(is_open, many)) <= LIMIT + LIMIT // 2
    assert not answers, "callbacks run on the loop only"
    run_flushes(files, loop)
    assert answers == list(range(200))


def test_a_file_is_removed_while_flushes_hold_every_descriptor(files: OsFiles, loop: Loop, tmp_path: Path) -> None:
    gone = parked(files, f"{tmp_path}/gone")
    answers: list[OSError | None] = []
    for file in opened(files, tmp_path, LIMIT * 2, b"x"):
        files.flush(file, answers.append)
    files.unlink(gone.path)
    assert gone.pread(9, 0) == b"content"
    run_flushes(files, loop)
    assert answers == [None] * (LIMIT * 2)


def test_files_that_are_being_sent_are_parked(files: OsFiles, tmp_path: Path) -> None:
    """An answer of many partitions, and a peer that does not read it."""
    many = opened(files, tmp_path, 50)
    for file in many:
        file.hold()
        file.fileno()
    assert sum(map(is_open, many)) <= LIMIT


@pytest.mark.parametrize("removed", [False, True])
def test_what_is_being_sent_from_a_parked_file_survives_its_end(files: OsFiles, tmp_path: Path, removed: bool) -> None:
    sent = parked(files, f"{tmp_path}/sent")
    sent.hold()
    if removed:
        files.unlink(sent.path)
    sent.close()
    if not removed:
        files.unlink(sent.path)
    fd = sent.fileno()
    assert os.pread(fd, 9, 0) == b"content"
    sent.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def parked(files: OsFiles, path: str, content: bytes = b"content") -> OsFile:
    file = files.open(path, create=True)
    file.append(content)
    assert file.flush_now() is None
    others = [files.open(f"{os.path.dirname(path)}/other-{number}", create=True) for number in range(3 * LIMIT)]
    for other in others:
        other.close()
    assert file.is_parked
    return file


def test_a_parked_file_is_found_under_its_new_name(files: OsFiles, tmp_path: Path) -> None:
    file = parked(files, f"{tmp_path}/a.cleaned")
    files.rename(f"{tmp_path}/a.cleaned", f"{tmp_path}/a.swap")
    files.rename(f"{tmp_path}/a.swap", f"{tmp_path}/a")
    assert file.pread(9, 0) == b"content"
    assert file.path == f"{tmp_path}/a"


def test_a_parked_file_is_found_in_the_renamed_directory(files: OsFiles, tmp_path: Path) -> None:
    files.mkdirs(f"{tmp_path}/t-0")
    file = parked(files, f"{tmp_path}/t-0/f")
    files.rename(f"{tmp_path}/t-0", f"{tmp_path}/t-0.x-delete")
    files.mkdirs(f"{tmp_path}/t-0")
    files.open(f"{tmp_path}/t-0/f", create=True).append(b"another")
    assert file.pread(9, 0) == b"content"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_without_a_name_stays_usable(files: OsFiles, loop: Loop, tmp_path: Path, replaced: bool) -> None:
    file = parked(files, f"{tmp_path}/f")
    if replaced:
        files.open(f"{tmp_path}/new", create=True).close()
        files.rename(f"{tmp_path}/new", f"{tmp_path}/f")
    else:
        files.unlink(f"{tmp_path}/f")
    assert file.pread(9, 0) == b"content"
    opened(files, tmp_path, 50)
    assert file.append(b"!") == 7
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    run_flushes(files, loop)
    assert answers == [None]
    file.close()


def test_a_file_closed_while_its_flush_waits_can_be_removed(files: OsFiles, loop: Loop, tmp_path: Path) -> None:
    files.mkdirs(f"{tmp_path}/d")
    file = parked(files, f"{tmp_path}/d/f")
    answers: list[OSError | None] = []
    with files._descriptors.names:  # the flusher's thread waits here
        files.flush(file, answers.append)
        file.close()
        files.rmdir(f"{tmp_path}/d")
    run_flushes(files, loop)
    assert answers == [None]
    assert file.fileno() < 0


def test_another_file_in_its_place_is_an_error(files: OsFiles, loop: Loop, tmp_path: Path) -> None:
    file = parked(files, f"{tmp_path}/f")
    (tmp_path / "copy").write_bytes(b"content")
    os.rename(tmp_path / "copy", tmp_path / "f")
    for call in (lambda: file.pread(1, 0), lambda: file.append(b"x"), file.fileno):
        with pytest.raises(OSError, match="another file has taken the place") as raised:
            call()
        assert raised.value.errno == errno.ESTALE
    answers: list[OSError | None] = []
    files.flush(file, answers.append)
    run_flushes(files, loop)
    assert answers[0] is not None and answers[0].errno == errno.ESTALE
    file.close()


def test_a_parked_file_that_is_gone_or_was_cut_is_an_error(files: OsFiles, tmp_path: Path) -> None:
    cut = parked(files, f"{tmp_path}/cut")
    os.truncate(tmp_path / "cut", 3)
    with pytest.raises(OSError, match="shorter than what was written"):
        cut.pread(3, 0)
    gone = parked(files, f"{tmp_path}/gone")
    os.unlink(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        gone.append(b"x")


def test_a_closed_file_stays_closed(files: OsFiles, tmp_path: Path) -> None:
    file = parked(files, f"{tmp_path}/f")
    file.close()
    file.close()
    assert file.fileno() < 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.pread(1, 0)


def test_where_the_process_has_no_descriptor_left_one_is_freed(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = OsFiles(loop, 100)
    held = opened(files, tmp_path, 3, b"x")
    open_, refused = os.open, [True]

    def refuse_once(path: str, flags: int, mode: int = 0o777) -> int:
        if refused.pop() if refused else False:
            raise OSError(errno.EMFILE, "Too many open files")
        return open_(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_once)
    files.open(f"{tmp_path}/new", create=True)
    assert sum(map(is_open, held)) == 2
