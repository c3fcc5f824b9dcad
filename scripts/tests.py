"""make test: every test, and the flaky ones that failed once more.

    python scripts/tests.py -n 5 [arguments for pytest]

FLAKY names each test whose result depends on the clock of a program that is not ours, with the reason. Of these up to
AGAIN_MAX run a second time, alone and after all others; what failed is printed both times, and a test that fails twice
fails. Every other test decides at its first failure: those of the simulator, of drills and of processes judge whether
acknowledged records are lost, and there one failure is a finding. A test that fails now and then is mended, or it is
named here with its reason.

Every process that runs tests reads all of them first, and half of that time pytest would spend on rewriting their
assertions. So the first run goes without, and prints the values of the variables of a test that fails instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

AGAIN_MAX = 3
FLAKY = {
    "tests/clients/test_aiokafka.py": "aiokafka gives up a request after times of its own",
    "tests/clients/test_groups.py": "a member whose process gets no CPU for 6 s, its session, is removed",
    "tests/clients/test_kafka_python.py": "kafka-python gives up a request after times of its own",
    "tests/clients/test_librdkafka.py": "librdkafka asks again after times of its own, up to 10 s",
    "tests/clients/test_outages.py": "three clients have 30 s of wall time to find restarted brokers",
    "tests/cli/test_up.py": "another process may take a port between the look for a free one and its use",
    "tests/spark/": "the JVM and its Python workers must connect within time limits of Spark",
}
"""A file, a folder or a test, and why it may fail on a busy machine although the product is right."""
LOGS = "--heirlog-logs"
QUICK = ("--assert=plain", "--showlocals")
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
FAILED = 1
"""pytest's exit code: tests ran, and some failed."""


def run(arguments: Sequence[str]) -> int:
    LAST_FAILED.unlink(missing_ok=True)
    status = _pytest([*QUICK, *arguments])
    failed = _last_failed() if status == FAILED else []
    if not failed or len(failed) > AGAIN_MAX or not all(test.startswith(tuple(FLAKY)) for test in failed):
        return status
    print("once more, alone:", *failed, sep="\n    ", flush=True)
    return _pytest(failed)


def _pytest(arguments: Sequence[str]) -> int:
    # each worker, and each command that a test starts, would compile the same modules again
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-m", "pytest", LOGS, *arguments], env=environment, check=False).returncode


def _last_failed() -> list[str]:
    return sorted(json.loads(LAST_FAILED.read_text(encoding="utf-8"))) if LAST_FAILED.exists() else []


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
