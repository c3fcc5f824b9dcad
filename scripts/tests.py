"""make test: every test, and those few that failed once more.

    python scripts/tests.py -n 3 [arguments for pytest]

Some hundred tests wait for processes, JVMs and clients of others, three at a time on two cores, and one of them that
gave up too early would hide what the other thousands say. So up to AGAIN_MAX failed tests run a second time, alone and
after all others; what failed is printed both times, and a test that fails twice fails. Tests in NEVER_AGAIN judge
whether acknowledged records are lost: there one failure is a finding.

Every process that runs tests reads all of them first, and half of that time pytest would spend on rewriting their
assertions. So the first run goes without, and tells of a test that fails the values of its variables instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

AGAIN_MAX = 3
NEVER_AGAIN = ("tests/drill/", "tests/processes/", "tests/sim/")
QUICK = ("--assert=plain", "--showlocals")
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
FAILED = 1
"""pytest's exit code: tests ran, and some failed."""


def run(arguments: Sequence[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    status = _pytest([*QUICK, *arguments])
    failed = _last_failed() if status == FAILED else []
    if not failed or len(failed) > AGAIN_MAX or any(test.startswith(NEVER_AGAIN) for test in failed):
        return status
    print("once more, alone:", *failed, sep="\n    ", flush=True)
    return _pytest(failed)


def _pytest(arguments: Sequence[str]) -> int:
    # each worker, and each command that a test starts, would compile the same modules again
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment, check=False).returncode


def _last_failed() -> list[str]:
    return sorted(json.loads(LAST_FAILED.read_text(encoding="utf-8"))) if LAST_FAILED.exists() else []


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
