"""scripts/tests.py, on small folders of tests: which of them run a second time, and what that decides."""

from __future__ import annotations

import importlib.util
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


def test_every_flaky_test_exists_and_none_of_them_judges_whether_records_are_lost() -> None:
    spec = importlib.util.spec_from_file_location("scripts_tests", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for place, reason in script.FLAKY.items():
        assert (SCRIPT.parents[1] / place.partition("::")[0]).exists(), place
        assert reason and not place.startswith(("tests/drill/", "tests/processes/", "tests/sim/"))


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
    status, output = run(tmp_path, tests__spark__test_a=FAILS_ONCE, tests__spark__test_b=PASSES)
    assert status == 0
    assert "assert not first" in output
    assert "once more, alone:\n    tests/spark/test_a.py::test_fails_once" in output
    assert output.count("passed") == 2
    assert "1 failed, 1 passed" in output


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    status, output = run(tmp_path, tests__spark__test_a=FAILS_ONCE, tests__spark__test_b=FAILS)
    assert status == 1
    assert "1 failed, 1 passed" in output


@pytest.mark.parametrize("where", ["clients", "drill", "processes", "sim"])
def test_one_failure_of_a_test_that_is_not_listed_as_flaky_is_a_failure(tmp_path: Path, where: str) -> None:
    status, output = run(tmp_path, **{f"tests__{where}__test_a": FAILS_ONCE, "tests__spark__test_b": PASSES})
    assert status == 1
    assert "once more" not in output


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    status, output = run(
        tmp_path, tests__spark__test_a=FAILS_ONCE, **{f"tests__spark__test_{n}": FAILS for n in range(3)}
    )
    assert status == 1
    assert "once more" not in output


def test_an_error_that_is_no_failed_test_is_passed_on(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 5, "no tests"
    assert run(tmp_path, tests__test_a="import nothing_there")[0] == 2
