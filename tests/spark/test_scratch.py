"""The folder of temporary files: gone with its process, or with the next one's start."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from heirlog.spark import scratch

HOLDS = "from heirlog.spark import scratch; import sys; print(scratch.folder(), flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process with such a folder, and the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    place = Path(process.stdout.readline().strip())
    assert place.is_dir()
    return process, place


def test_a_process_removes_its_folder_when_it_ends(temporary_directory: Path) -> None:
    process, place = holder()
    assert place.parent == temporary_directory
    process.communicate("")
    assert list(temporary_directory.iterdir()) == []


def test_the_next_one_removes_what_a_killed_one_left_and_nothing_of_the_living(temporary_directory: Path) -> None:
    living, kept = holder()
    killed, left = holder()
    (left / "blockmgr-1").mkdir()
    (left / "blockmgr-1" / "shuffle").write_text("much")
    killed.kill()
    killed.wait()
    scratch.remove_leftovers()
    assert kept.is_dir() and not left.exists()
    living.communicate("")


def test_only_folders_of_this_kind_are_removed(temporary_directory: Path) -> None:
    old = time.time() - 2 * scratch.MIN_AGE_S
    for name in ("heirlog-other", "spark-1234", f"{scratch.PREFIX}young", f"{scratch.PREFIX}old"):
        (temporary_directory / name).mkdir()
    (temporary_directory / f"{scratch.PREFIX}file").write_text("not a folder")
    os.symlink(temporary_directory / "spark-1234", temporary_directory / f"{scratch.PREFIX}link")
    os.utime(temporary_directory / f"{scratch.PREFIX}old", (old, old))
    scratch.remove_leftovers()
    left = {entry.name.removeprefix(scratch.PREFIX) for entry in temporary_directory.iterdir()}
    assert left == {"heirlog-other", "spark-1234", "young", "file", "link"}


def test_a_start_removes_a_bounded_number(temporary_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "REMOVED_MAX", 2)
    for number in range(5):
        place = temporary_directory / f"{scratch.PREFIX}{number}"
        place.mkdir()
        (place / scratch.LOCK).touch()
    scratch.remove_leftovers()
    assert len(list(temporary_directory.iterdir())) == 3
