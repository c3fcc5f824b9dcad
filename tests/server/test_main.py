"""What a process does around its node."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from heirlog.server.logs import Logger
from heirlog.server.main import LOCK_NAME, Refused, lock_directories


def test_a_directory_belongs_to_one_process(tmp_path: Path) -> None:
    held = lock_directories([str(tmp_path)])
    with pytest.raises(Refused, match="in use by another process"):
        lock_directories([str(tmp_path)])
    for lock in held:
        os.close(lock)
    for lock in lock_directories([str(tmp_path)]):
        os.close(lock)
    assert os.listdir(tmp_path) == [LOCK_NAME]


def test_a_refused_lock_lets_go_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    held = lock_directories([str(tmp_path / "b")])
    with pytest.raises(Refused):
        lock_directories([str(tmp_path / "a"), str(tmp_path / "b")])
    for lock in lock_directories([str(tmp_path / "a")]) + held:
        os.close(lock)


def test_a_directory_that_is_not_there_is_left_to_the_node(tmp_path: Path) -> None:
    assert lock_directories([str(tmp_path / "nowhere")]) == []


def test_log_lines_are_logfmt_from_their_level_up() -> None:
    out = io.StringIO()
    log = Logger(3, "info", out)
    log("debug", "unseen")
    log("warning", "isr-shrunk", topic="t", isr=[1, 2], why='a "b"\nc', empty="")
    stamp, line = out.getvalue().split(" ", 1)
    assert stamp.endswith("Z")
    assert line == 'warning node=3 isr-shrunk topic=t isr="[1, 2]" why="a \\"b\\"\\nc" empty=""\n'
