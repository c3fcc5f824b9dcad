"""Flushes, which leave the event loop."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from server.inbox import Inbox

from heirlog.server import os_file
from heirlog.server.files import OsFiles


def test_flushes_asked_meanwhile_share_the_next_one(
    files: OsFiles, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        flushed.append(fd)
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(os_file, "sync_data", slow)
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

    monkeypatch.setattr(os_file, "sync_data", waits)
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
    calls = itertools.count()

    def sync(fd: int) -> None:
        together.wait()  # breaks, unless two threads are here
        if next(calls) % 4 == 0:
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
