"""scripts/tests.py, on small folders of tests: which of them run a second time, and what that decides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/tests.py"

FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
FAILS = "def test_fails(): assert False"
PASSES = "def test_passes(): pass"


def run(where: Path, **files: str) -> tuple[int, str]:
    (where / "pytest.ini").write_text("[pytest]\n")
    for name, content in files.items():
        path = where / name.replace("__", "/")
        path = path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    command = [sys.executable, SCRIPT, "-q"]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout


def test_what_fails_once_is_printed_and_does_not_decide(tmp_path: Path) -> None:
    status, output = run(tmp_path, tests__clients__test_a=FAILS_ONCE, tests__clients__test_b=PASSES)
    assert status == 0
    assert "assert not first" in output
    assert "once more, alone:\n    tests/clients/test_a.py::test_fails_once" in output
    assert output.count("passed") == 2
    assert "1 failed, 1 passed" in output


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    status, output = run(tmp_path, tests__clients__test_a=FAILS_ONCE, tests__clients__test_b=FAILS)
    assert status == 1
    assert "1 failed, 1 passed" in output


@pytest.mark.parametrize("where", ["drill", "processes", "sim"])
def test_one_failure_where_loss_is_judged_is_a_failure(tmp_path: Path, where: str) -> None:
    status, output = run(tmp_path, **{f"tests__{where}__test_a": FAILS_ONCE, "tests__clients__test_b": PASSES})
    assert status == 1
    assert "once more" not in output


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    status, output = run(tmp_path, tests__clients__test_a=FAILS_ONCE, **{f"tests__test_{n}": FAILS for n in range(3)})
    assert status == 1
    assert "once more" not in output


def test_an_error_that_is_no_failed_test_is_passed_on(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 5, "no tests"
    assert run(tmp_path, tests__test_a="import nothing_there")[0] == 2
