"""docs/tutorials/tests.md: its program is a test that passes. docs/reference/test-cluster.md names what there is."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

from heirlog.testing import Cluster

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "tutorials" / "tests.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "test-cluster.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\| (argument|call) .*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_program_of_the_page_passes(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text("\n\n".join(PROGRAM.findall(PAGE)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0 and "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_tables_name_every_argument_and_call_of_a_cluster() -> None:
    named = {
        head: {name for row in rows.splitlines() for name in re.findall(r"`(\w+)[(`]", row.split("|")[1])}
        for head, rows in TABLE.findall(REFERENCE)
    }
    assert named["argument"] == set(inspect.signature(Cluster).parameters)
    assert named["call"] == {name for name in vars(Cluster) if not name.startswith("_")}
