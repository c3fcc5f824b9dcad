"""What names a file: whatever takes its place has another identity."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heirlog.server import file_identity as module
from heirlog.server.file_identity import file_identity


def test_what_is_written_to_a_file_or_made_in_a_directory_does_not_change_its_identity(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a")
    before = [file_identity(str(path)) for path in (file, tmp_path)]
    (tmp_path / "other").mkdir()
    file.rename(tmp_path / "renamed")
    assert file_identity(str(tmp_path)) == before[1]
    assert before[0] != before[1]


@pytest.mark.parametrize("has_generations", [True, False])
def test_a_copy_in_the_place_of_a_file_has_another_identity(
    tmp_path: Path, has_generations: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_generations:
        monkeypatch.setattr(module, "_generation", lambda descriptor: None)
    file = tmp_path / "file"
    file.write_text("a")
    first, times = file_identity(str(file)), file.stat()
    # most file systems use the inode number again at once
    while file.stat().st_ctime_ns == times.st_ctime_ns:
        file.unlink()
        file.write_text("a")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file_identity(str(file)) != first


def test_a_volume_that_was_attached_again_has_another_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = file_identity(str(tmp_path))
    monkeypatch.setattr(module, "_disk_sequence", lambda device: "attached again")
    assert file_identity(str(tmp_path)) != first


@pytest.mark.skipif(not Path("/sys/dev/block").is_dir(), reason="there is no sysfs")
def test_the_disk_of_a_partition_is_found() -> None:
    for block in Path("/sys/dev/block").iterdir():
        place = block if (block / "diskseq").exists() else block.resolve().parent
        major, minor = map(int, block.name.split(":"))
        wanted = (place / "diskseq").read_text().strip() if (place / "diskseq").exists() else ""
        assert module._disk_sequence(os.makedev(major, minor)) == wanted


def test_what_is_not_there_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        file_identity(str(tmp_path / "none"))
