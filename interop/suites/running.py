"""Runs one suite with pytest in a process of its own, against a node of its own, and judges what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation

TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    """In the lists of what is expected."""
    home: Path
    """Where it is run, and what its tests are named from."""
    tests: tuple[str, ...]
    """Files or folders below `home`."""
    import_path: tuple[Path, ...]
    environment: Callable[[str], Mapping[str, str]]
    """Variables that tell it of the broker at an address."""


def check(client: str, suites: Sequence[Suite]) -> str:
    """Every suite at once. Raises AssertionError with every test that is not as it should be."""
    with ThreadPoolExecutor(len(suites)) as pool:
        judged = list(pool.map(lambda suite: judge(client, suite), suites))
    problems = [f"{client} {problem}" for _, found in judged for problem in found]
    if problems:
        raise AssertionError("\n".join(problems))
    return "; ".join(said for said, _ in judged)


def record(suites: Sequence[Suite], node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """What the tests of each suite come to, one suite after another, each with a node of its own."""
    found = {}
    for suite in suites:
        with node() as address:
            found[suite.name] = run(suite, address, loud=True)
    return found


def judge(client: str, suite: Suite) -> tuple[str, list[str]]:
    """A sentence on what ran, and what is wrong."""
    expected = expectation(client, suite.name)
    with heirlog_node() as address:
        outcomes = dict(run(suite, address))
        again = expected.missed(outcomes)
        if again:
            outcomes.update(run(suite, address, again, loud=True))
    problems = [f"{suite.name}: {problem}" for problem in expected.problems(outcomes)]
    said = f"{suite.name}: {len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {len(again)} run twice" if again else ""), problems


def run(suite: Suite, address: str, tests: Sequence[str] = (), loud: bool = False) -> Outcomes:
    """What the tests (all of them, where none is named) came to. loud: prints what failed, and how."""
    # as pytest sees it: names of tests would begin nowhere else
    home = suite.home.resolve()
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        results = Path(directory) / "results.json"
        settings = Path(directory) / "pytest.ini"
        settings.write_text("[pytest]\n")
        environment = {
            **os.environ,
            **suite.environment(address),
            "PYTHONPATH": os.pathsep.join(map(str, (*suite.import_path, HERE))),
            "HEIRLOG_SUITE_RESULTS": str(results),
        }
        options = ["-p", "recorder", "-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(home)]
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                *options,
                "-q",
                "--tb=short",
                "--show-capture=no",
                *(tests or suite.tests),
            ],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        if not results.exists():
            raise RuntimeError(f"the tests of {suite.name} did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        if loud and done.returncode:
            print(done.stdout[-12_000:], flush=True)
        found: dict[str, str] = json.loads(results.read_text())
        return found
