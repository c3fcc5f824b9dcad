"""kafka-python's own integration tests, of several releases."""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import jars

from suites import running
from suites.running import Suite
from suites.verdict import HERE, Outcomes

CLIENT = "kafka_python"
HOME = jars.CACHE / "suites"
FETCHING = threading.Lock()


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


_fetched: set[Release] = set()


def suites() -> list[Suite]:
    for release in RELEASES:
        fetch(release)
    return [
        Suite(release.version, release.home, ("test/integration",), (release.home,), environment)
        for release in RELEASES
    ]


def check() -> str:
    """For `make interop`. Raises AssertionError with every test that is not as it should be."""
    return running.check(CLIENT, suites())


def record(node: Callable[[], AbstractContextManager[str]]) -> dict[str, Outcomes]:
    """For `record.py`."""
    return running.record(suites(), node)


def environment(address: str) -> Mapping[str, str]:
    # their fixture wants a folder of Kafka's scripts to exist, and takes nothing from it
    return {"KAFKA_URI": f"kafka://{address}", "KAFKA_VERSION": "4.2.0", "KAFKA_ROOT": tempfile.gettempdir()}


def fetch(release: Release) -> None:
    """Unpack the source distribution and lay our files beside its tests: once, since two checks use them."""
    with FETCHING:
        if release not in _fetched:
            _fetch(release)
            _fetched.add(release)


def _fetch(release: Release) -> None:
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
    jars.unpack(archive, HOME)
    # its tests import themselves as a package, which the distribution leaves incomplete
    (release.home / "test" / "__init__.py").touch()
    shutil.copy(HERE / "service.py", release.home / "test" / "service.py")
