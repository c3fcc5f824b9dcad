"""Files on the operating system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from server.inbox import Inbox

from heirlog.server.files import OsFiles
from heirlog.server.os_file import OsFile


def test_the_start_of_the_machine_has_a_name_that_stays() -> None:
    other = subprocess.run(
        [sys.executable, "-c", "from heirlog.server.boot_id import read_boot_id; print(read_boot_id())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert OsFiles(Inbox()).boot_id == other.stdout.strip() != ""


def test_a_file_that_is_not_there_is_not_made_unasked(files: OsFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(f"{tmp_path}/f")


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
