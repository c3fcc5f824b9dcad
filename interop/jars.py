"""Apache Kafka 4.2's jars and what they need: resolved by Maven from pom.xml, checked against jars.sha256.

They stay in .cache/interop/jars: a later run asks Maven for nothing. Nothing is used that is not in jars.sha256; after
a change of pom.xml, write it anew: `cd .cache/interop/jars && sha256sum *.jar > ../../../interop/jars.sha256`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "interop"
JARS = CACHE / "jars"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
COPY_ONE = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
TRIES = 4


P = ParamSpec("P")
T = TypeVar("T")
_PREPARING = threading.RLock()


def one_at_a_time(prepare: Callable[P, T]) -> Callable[P, T]:
    """What downloads or builds is not done twice at once by checks that run side by side."""

    @wraps(prepare)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        with _PREPARING:
            return prepare(*args, **kwargs)

    return alone


def unpack(archive: Path, place: Path | str, below: str = "") -> None:
    """The members of an archive whose names begin with `below`. Its hash was compared before."""
    # Python 3.11.2, of Debian 12, has no filter
    options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as packed:
        packed.extractall(place, [member for member in packed if member.name.startswith(below)], **options)


class Missing(Exception):
    """Something of this machine is missing: says what to install."""


def classpath() -> str:
    return f"{JARS}/*"


@one_at_a_time
def fetch() -> Path:
    """The directory with every jar. Raises Missing; RuntimeError where a download fails or has other content."""
    need("java", "javac", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    return resolved(HERE / "pom.xml", JARS, HERE / "jars.sha256")


@one_at_a_time
def resolved(pom: Path, place: Path, sums: Path) -> Path:
    """The directory with what a pom.xml names and all that it depends on.

    Raises Missing; RuntimeError where a download fails, or has other content than `sums` says.
    """
    if wrong(place, sums):
        need("java", "mvn", install="a JDK and Maven (on Debian: apt install openjdk-17-jdk-headless maven)")
        shutil.rmtree(place, ignore_errors=True)
        command = ["mvn", "-B", "-q", "-f", str(pom), COPY]
        retried([*command, "-DincludeScope=runtime", f"-DoutputDirectory={place}"])
    if wrong(place, sums):
        raise RuntimeError(f"not the jars that interop/{sums.name} names: {', '.join(wrong(place, sums))}")
    return place


@one_at_a_time
def fetch_single(artifacts: Sequence[str], place: Path, sums: Path) -> list[Path]:
    """Artifacts one by one, without what they depend on, in a directory that holds nothing else.

    Raises Missing; RuntimeError where a download fails, or has other content than `sums` says.
    """
    need("java", "mvn", install="a JDK and Maven (on Debian: apt install openjdk-17-jdk-headless maven)")
    if wrong(place, sums):
        shutil.rmtree(place, ignore_errors=True)
        for artifact in artifacts:
            retried(["mvn", "-B", "-q", COPY_ONE, f"-Dartifact={artifact}", f"-DoutputDirectory={place}"], cwd=HERE)
    if wrong(place, sums):
        raise RuntimeError(f"not the jars that interop/{sums.name} names: {', '.join(wrong(place, sums))}")
    return sorted(place.glob("*.jar"))


def wrong(place: Path, sums: Path) -> list[str]:
    """Names of jars that are missing, too many, or have another checksum."""
    expected = dict(reversed(line.split()) for line in sums.read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in place.glob("*.jar")}
    return sorted({name for name, _ in expected.items() ^ found.items()})


def need(*programs: str, install: str) -> None:
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise Missing(install)


def retried(command: list[str], cwd: Path | None = None) -> None:
    """Run a command that downloads. Raises RuntimeError with its output after the last try."""
    for attempt in range(1, TRIES + 1):
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            return
        print(f"  try {attempt} of {TRIES} failed: {' '.join(command)}", flush=True)
        time.sleep(5 * attempt)
    raise RuntimeError(f"{' '.join(command)} failed {TRIES} times:\n{done.stdout[-2000:]}")


def main() -> int:
    """Print the directory of the jars, or what to install."""
    try:
        print(fetch())
    except Missing as missing:
        print(f"install {missing}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
