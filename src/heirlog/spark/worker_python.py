"""Whether Spark's Python processes on this machine can use heirlog, and the right Python for those that cannot.

Spark runs its Python processes with PYSPARK_PYTHON or else with the `python3` of PATH. After `.venv/bin/python
script.py` without activation that is another Python, and a query would fail with `No module named 'heirlog'`. So a
session is checked when the source is registered:

    the user chose no Python                 --> this one is set, for everything that is registered from now on
    the user chose a Python without heirlog  --> WorkerPythonError

Only classic sessions show which Python they use. On Spark Connect the planner finds out (`deferred.py`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from heirlog.spark import interpreter

if TYPE_CHECKING:
    from pyspark import SparkContext

_TIMEOUT_S = 60.0
_ENTRIES = ("spark.pyspark.python", "spark.pyspark.driver.python")
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_NEEDED = ("heirlog", "pyarrow", "numba")
_ASK = f"""
import importlib.util, sys
is_same = sys.version_info[:2] == {sys.version_info[:2]}
sys.exit(not (is_same and all(map(importlib.util.find_spec, {_NEEDED}))))
"""


class WorkerPythonError(RuntimeError):
    """Spark's workers would run a Python without heirlog. The message says what to set."""


def provide(context: SparkContext) -> None:
    """Let the session's Python processes run a Python that has heirlog. Raises WorkerPythonError."""
    if _is_default(context) and not has_heirlog(context.pythonExec, _archives(context)):
        is_local = (context.master or "").startswith("local")
        context.pythonExec = interpreter.program() if is_local else sys.executable
        return
    check(context.pythonExec, _archives(context))


def check(program: str, archives: list[str]) -> None:
    """archives: what Spark adds to the path of its Python processes. Raises WorkerPythonError."""
    if not has_heirlog(program, archives):
        raise WorkerPythonError(
            f"Spark's workers would run {program}, which does not have heirlog[spark] for Python {_VERSION}: before "
            f"Spark starts, set PYSPARK_PYTHON to {sys.executable}, or to another Python {_VERSION} that has it"
        )


def has_heirlog(program: str, archives: list[str]) -> bool:
    """Whether the program is a Python of this version with all that a task needs; Spark refuses another version."""
    found = shutil.which(program)
    if found is None:
        return False
    if _is_this_python(Path(found)) or found == interpreter.program():
        return True
    path = os.pathsep.join([*archives, *filter(None, [os.environ.get("PYTHONPATH")])])
    # -B and another folder: the question leaves no files, and answers nothing for what is in this folder by chance
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    try:
        return not subprocess.run([found, "-B", "-c", _ASK], env=environment, timeout=_TIMEOUT_S).returncode
    except (OSError, subprocess.SubprocessError):
        return False


def _is_this_python(program: Path) -> bool:
    """By its folder as well: environments link to the same file."""
    this = Path(sys.executable)
    return program.absolute().parent == this.absolute().parent and program.resolve() == this.resolve()


def _archives(context: SparkContext) -> list[str]:
    from pyspark import SparkFiles

    return [SparkFiles.get(name) for name in context._python_includes or ()]


def _is_default(context: SparkContext) -> bool:
    conf = context.getConf()
    return "PYSPARK_PYTHON" not in os.environ and not any(conf.contains(entry) for entry in _ENTRIES)
