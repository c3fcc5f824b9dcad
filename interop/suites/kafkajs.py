"""What kafkajs's own tests ask of a broker, in our words: its npm package comes without them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from clients import installed_kafkajs

from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation, not_passed, run_patiently

CLIENT = "kafkajs"
SUITE = "kafkajs"
TESTS = "kafkajs.test.js"
TIMEOUT_S = 300


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    expected = expectation(CLIENT, SUITE)
    with heirlog_node() as address:
        outcomes, again = run_patiently(partial(run, address), expected.missed)
    problems = expected.problems(outcomes)
    if problems:
        raise AssertionError("\n".join(problems))
    said = f"{len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {again} run twice" if again else "")


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`."""
    with node() as address:
        outcomes, _ = run_patiently(partial(run, address), not_passed)
        return {SUITE: outcomes}


def run(address: str, names: Sequence[str] = ()) -> Outcomes:
    """names: only these, with what is printed. Raises jars.Missing."""
    home = installed_kafkajs()
    shutil.copy(HERE / "asked" / TESTS, home / TESTS)
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        results = Path(directory) / "results.json"
        wanted = [f"--test-name-pattern=^{re.escape(name)}$" for name in names]
        done = subprocess.run(
            ["node", "--test-reporter=spec", *wanted, TESTS],
            cwd=home,
            env={**os.environ, "SUITE_ADDRESS": address, "SUITE_RESULTS": str(results)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
        if not results.exists():
            raise RuntimeError(f"the tests of kafkajs did not run:\n{done.stdout[-3000:]}")
        if names and done.returncode:
            print(done.stdout[-12_000:], flush=True)
        found: dict[str, str] = json.loads(results.read_text())
        return found
