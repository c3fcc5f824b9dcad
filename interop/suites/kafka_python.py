"""kafka-python's integration tests, of several releases, each against a node of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import jars
from suites.nodes import heirlog_node
from suites.verdict import HERE, Outcomes, expectation

CLIENT = "kafka_python"
HOME = jars.CACHE / "suites"
TIMEOUT_S = 240


@dataclass(frozen=True, slots=True)
class Release:
    version: str
    archive: str
    sha256: str

    @property
    def home(self) -> Path:
        return HOME / self.archive.removesuffix(".tar.gz")


RELEASES = (
    Release(
        "3.0.12",
        "kafka_python-3.0.12.tar.gz",
        "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65",
    ),
    Release(
        "2.3.3",
        "kafka_python-2.3.3.tar.gz",
        "c566a326161595d18e6a65069fb5cee8e389528529932b224ce57641ce49de1d",
    ),
)


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    for release in RELEASES:
        fetch(release)
    with ThreadPoolExecutor(len(RELEASES)) as pool:
        judged = list(pool.map(judge, RELEASES))
    problems = [problem for _, found in judged for problem in found]
    if problems:
        raise AssertionError("\n".join(problems))
    return "; ".join(said for said, _ in judged)


def judge(release: Release) -> tuple[str, list[str]]:
    """A sentence on what ran, and what is wrong."""
    expected = expectation(CLIENT, release.version)
    with heirlog_node() as address:
        outcomes = dict(run(release, address))
        again = expected.missed(outcomes)
        if again:
            outcomes.update(run(release, address, again, loud=True))
    problems = [f"kafka-python {release.version}: {problem}" for problem in expected.problems(outcomes)]
    said = f"{release.version}: {len(expected.asked)} tests, {len(expected.reasons)} left out"
    return said + (f", {len(again)} run twice" if again else ""), problems


def run(release: Release, address: str, tests: Sequence[str] = ("test/integration",), loud: bool = False) -> Outcomes:
    """What each of `tests` came to with the broker at `address`. loud: prints what failed, and how."""
    with tempfile.TemporaryDirectory(prefix="suite-") as directory:
        results = Path(directory) / "results.json"
        settings = Path(directory) / "pytest.ini"
        settings.write_text("[pytest]\n")
        environment = {
            **os.environ,
            "KAFKA_URI": f"kafka://{address}",
            "KAFKA_VERSION": "4.2.0",
            # their fixture wants it to exist, and takes nothing from it
            "KAFKA_ROOT": directory,
            "PYTHONPATH": f"{release.home}{os.pathsep}{HERE}",
            "HEIRLOG_SUITE_RESULTS": str(results),
        }
        options = ["-p", "recorder", "-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(release.home)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-q", "--tb=short", "--show-capture=no", *tests],
            cwd=release.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        if not results.exists():
            raise RuntimeError(f"the tests of kafka-python {release.version} did not run:\n{done.stdout[-3000:]}")
        if loud and done.returncode:
            print(done.stdout[-12_000:], flush=True)
        found: dict[str, str] = json.loads(results.read_text())
        return found


def fetch(release: Release) -> None:
    """Unpack the source distribution and lay our files beside its tests."""
    archive = HOME / release.archive
    HOME.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        requirement = HOME / f"{release.archive}.txt"
        requirement.write_text(f"kafka-python=={release.version} --hash=sha256:{release.sha256}\n")
        options = ["--no-deps", "--no-binary", "kafka-python", "--require-hashes", "-d", str(HOME)]
        jars.retried([sys.executable, "-m", "pip", "download", "-q", *options, "-r", str(requirement)])
    if hashlib.sha256(archive.read_bytes()).hexdigest() != release.sha256:
        raise RuntimeError(f"{archive} is not the file that interop/suites/kafka_python.py names: remove it")
    shutil.rmtree(release.home, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(HOME, filter="data")
    # its tests import themselves as a package, which the distribution leaves incomplete
    (release.home / "test" / "__init__.py").touch()
    shutil.copy(HERE / "service.py", release.home / "test" / "service.py")


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """The outcomes of every release, one after another: for `record.py`."""
    found = {}
    for release in RELEASES:
        fetch(release)
        with node() as address:
            found[release.version] = run(release, address)
    return found
