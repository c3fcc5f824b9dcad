"""docs/tutorials/tests.md: its programs are tests that pass. docs/reference/test-cluster.md names what there is."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heirlog.testing import Cluster

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "tutorials" / "tests.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "test-cluster.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r'^```python(?: title="(\w+\.py)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"^\| (argument|call) .*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)

IN_ONE_RUN = ("orders", "six_partitions", "secured", "asyncio")


def pages_files() -> dict[str, str]:
    """Its programs by file name; those without a name are one file."""
    found: dict[str, str] = {}
    for name, program in PROGRAM.findall(PAGE):
        name = name or "test_orders.py"
        found[name] = f"{found[name]}\n\n{program}" if name in found else program
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["pytest", "-q", "-p", "no:cacheprovider", *(f"test_{name}.py" for name in IN_ONE_RUN)],
            "4 passed",
        ),
        (["pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "test_parallel.py"], "4 passed"),
        (["unittest", "test_unit.py"], "OK"),
    ],
)
def test_the_programs_of_the_page_pass(tmp_path: Path, arguments: list[str], said: str) -> None:
    for name, program in pages_files().items():
        (tmp_path / name).write_text(program)
    ran = subprocess.run([sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0 and said in ran.stdout + ran.stderr, ran.stdout + ran.stderr


def test_the_tables_name_every_argument_and_call_of_a_cluster() -> None:
    named = {
        head: {name for row in rows.splitlines() for name in re.findall(r"`(\w+)[(`]", row.split("|")[1])}
        for head, rows in TABLE.findall(REFERENCE)
    }
    assert named["argument"] == set(inspect.signature(Cluster).parameters)
    assert named["call"] == {name for name in vars(Cluster) if not name.startswith("_")}
