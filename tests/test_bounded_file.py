"""A file that a configuration names never keeps its reader waiting."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from heirlog.bounded_file import read_bounded


def test_a_regular_file_is_read_up_to_one_byte_beyond_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_bounded(str(path), 100) == b"x" * 100
    assert read_bounded(str(path), 10) == b"x" * 11
    link = tmp_path / "link"
    link.symlink_to(path)
    assert len(read_bounded(str(link), 100)) == 100, "as secrets of Kubernetes are"


def test_what_may_wait_for_ever_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "empty").touch()
    for path, why in (
        (pipe, "regular"),
        (tmp_path, "regular"),
        ("/dev/zero", "regular"),
        (tmp_path / "empty", "empty"),
    ):
        with pytest.raises(OSError, match=why):
            read_bounded(str(path), 100)
    with pytest.raises(OSError, match="no file can have this name"):
        read_bounded("a\0b", 100)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such files")
def test_a_file_of_the_kernel_is_refused_before_it_is_read() -> None:
    with pytest.raises(OSError, match="without a size"):
        read_bounded("/proc/self/status", 100)
