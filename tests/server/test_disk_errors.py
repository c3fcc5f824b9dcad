from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heirlog.server import os_file
from heirlog.server.disk_errors import ADVICE, DiskError, with_advice
from heirlog.server.files import OsFiles
from heirlog.server.os_file import OsFile


def failing(code: int) -> Callable[..., int]:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("call", "work"),
    [
        ("pwrite", lambda file: file.append(b"x")),
        ("pwritev", lambda file: file.append([b"x", b"y"])),
        ("pwrite", lambda file: file.pwrite(b"x", 0)),
        ("pread", lambda file: file.pread(1, 0)),
        ("ftruncate", lambda file: file.truncate(0)),
    ],
)
def test_the_error_of_an_open_file_names_it_and_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, work: Callable[[OsFile], object]
) -> None:
    path = f"{tmp_path}/00000000000000000000.log"
    file = OsFiles(lambda function: None).open(path, create=True)
    file.append(b"abc")
    with monkeypatch.context() as patched:
        patched.setattr(os_file.os, call, failing(errno.ENOSPC))
        with pytest.raises(OSError, match="No space left on device") as failed:
            work(file)
    assert f"'{path}' (free space there, and start the node again)" in str(failed.value)
    file.close()


def test_a_flush_that_fails_says_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OsFiles(lambda function: None).open(f"{tmp_path}/f", create=True)
    with monkeypatch.context() as patched:
        patched.setattr(os_file, "sync_data", failing(errno.EIO))
        first = file.flush_now()
    assert str(first) == f"[Errno {errno.EIO}] {os.strerror(errno.EIO)}: '{tmp_path}/f' (check the disk)"
    assert file.flush_now() is first
    file.close()


def test_a_path_that_cannot_be_used_is_named_once(tmp_path: Path) -> None:
    files = OsFiles(lambda function: None)
    error = with_advice(PermissionError(errno.EACCES, "Permission denied", f"{tmp_path}/a", None, f"{tmp_path}/b"), "x")
    assert isinstance(error, DiskError) and error.errno == errno.EACCES
    assert str(error).startswith(f"[Errno {errno.EACCES}] Permission denied: '{tmp_path}/a' -> '{tmp_path}/b' (let the")
    with pytest.raises(FileNotFoundError) as missing:
        files.open(f"{tmp_path}/not-there")
    assert "(" not in str(missing.value), "no advice for what a caller handles"


def test_every_advice_ends_the_sentence_of_the_error() -> None:
    assert all(
        str(DiskError(code, os.strerror(code), "/f")).endswith(f"'/f' ({text})") for code, text in ADVICE.items()
    )
