"""The Python of Spark's workers on this machine: this one, without the packed copy of PySpark.

Spark puts the archive pyspark.zip of its installation first on the import path of its Python processes. The archive
contains source files, and Python compiles what it imports from an archive every time: a second of CPU for each worker,
and for each start of a stream. If PySpark was installed as a package, compiled copies of the same modules are next to
the archive, but Spark has no setting to use them. So Spark gets a Python launcher that removes the archive from the
path and then runs the real Python. This is done only if the Java part of the same installation runs.

The launcher also asks for a planner that is forked instead of a new one (`planners.py`).
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
from pathlib import Path

import pyspark

from heirlog.spark import planners, scratch

_PROGRAM = """#!/bin/sh
# what is in Spark's archive is installed as well, and compiled
set -f
path=
IFS=:
for place in $PYTHONPATH; do
    case $place in
        */pyspark.zip) ;;
        *) path=${{path:+$path:}}$place ;;
    esac
done
unset IFS
export PYTHONPATH=$path
case "$*" in
    "-m {planner}") exec {python} -I -S {client} {planners} "$@" ;;
esac
exec {python} "$@"
"""


def program() -> str:
    """What PYSPARK_PYTHON should be for a session on this machine."""
    is_installed = Path(pyspark.__file__).is_file() and "SPARK_HOME" not in os.environ and os.name == "posix"
    return _without_archive() if is_installed else sys.executable


@functools.cache
def _without_archive() -> str:
    """Removed when this process ends."""
    wrapper = scratch.folder() / "python"
    names = {"python": sys.executable, "client": planners.CLIENT, "planners": planners.address()}
    quoted = {name: shlex.quote(str(value)) for name, value in names.items()}
    wrapper.write_text(_PROGRAM.format(planner=planners.MODULE, **quoted))
    wrapper.chmod(0o755)
    return str(wrapper)
