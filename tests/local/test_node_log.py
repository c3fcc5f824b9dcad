"""A node's file is bounded, and no line is lost or cut where a new one begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from heirlog.local.node_log import OLDER_PARTS

SAYS = """
import os, sys
from heirlog.local.node_log import NodeLog
sys.stderr = NodeLog(sys.argv[1], part_bytes=1000)
for number in range(int(sys.argv[2])):
    print(f"line {number:05}", file=sys.stderr, flush=True)
os.write(1, b"native\\n")
raise SystemExit("the end")
"""


def said(path: Path, lines: int) -> str:
    done = subprocess.run([sys.executable, "-c", SAYS, str(path), str(lines)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    return path.read_text()


def parts(path: Path) -> list[Path]:
    """The oldest first."""
    return [*sorted(path.parent.glob("node.log.*"), reverse=True), path]


def test_old_lines_go_and_new_ones_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    newest = said(path, 1000)
    assert newest.endswith("native\nthe end\n")
    found = parts(path)
    assert len(found) == 1 + OLDER_PARTS
    lines = [line for part in found for line in part.read_text().splitlines() if line.startswith("line")]
    assert lines == [f"line {number:05}" for number in range(1000 - len(lines), 1000)]
    assert all(part.stat().st_size < 1100 for part in found[:-1])


def test_a_later_start_continues_the_file(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    said(path, 10)
    assert said(path, 10).count("line 00000") == 2
    assert parts(path) == [path]


def test_where_no_new_file_can_be_made_the_lines_stay_in_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    for number in range(1, OLDER_PARTS + 1):
        (tmp_path / f"node.log.{number}" / "not empty").mkdir(parents=True)
    newest = said(path, 300)
    assert newest.count("line ") == 300
