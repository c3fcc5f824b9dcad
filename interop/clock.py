"""The wall clock of running nodes set back an hour by libfaketime: tests/processes/test_clock.py, below Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import debian
import jars

TEST = "tests/processes/test_clock.py"
LIBRARY = "libfaketimeMT.so.1"
HOME = jars.CACHE / "libfaketime"
INSTALL = "libfaketime (on Debian: apt install libfaketime)"
TIMEOUT_S = 120


def check() -> str:
    """For `make interop`. Raises AssertionError with what the test said."""
    library = found() or downloaded()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", TEST],
        cwd=jars.HERE.parent,
        env={**os.environ, "HEIRLOG_LIBFAKETIME": str(library)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return "by libfaketime; nobody was taken for dead, nothing was lost"


def found() -> Path | None:
    for home in (Path("/usr/lib"), HOME):
        for path in sorted(home.rglob(f"faketime/{LIBRARY}")):
            return path
    return None


def downloaded() -> Path:
    """Raises jars.Missing."""
    debian.unpacked("libfaketime", INSTALL)
    library = found()
    if library is None:
        raise jars.Missing(INSTALL)
    return library
