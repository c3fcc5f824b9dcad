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
_ASK = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, ('heirlog', 'pyarrow', 'numba'))))"


class WorkerPythonError(RuntimeError):
    """Spark's workers would run a Python without heirlog. The message says what to set."""


def provide(context: SparkContext) -> None:
    """Let the session's Python processes run a Python that has heirlog. Raises WorkerPythonError."""
    chosen = context.pythonExec
    if has_heirlog(chosen, _archives(context)):
        return
    if _is_default(context):
        is_local = (context.master or "").startswith("local")
        context.pythonExec = interpreter.program() if is_local else sys.executable
        return
    raise WorkerPythonError(
        f"Spark's workers would run {chosen}, which does not have heirlog[spark]: before Spark starts, set "
        f"PYSPARK_PYTHON to {sys.executable}, or to another Python that has it"
    )


def has_heirlog(program: str, archives: list[str]) -> bool:
    """archives: what Spark adds to the path of its Python processes."""
    found = shutil.which(program)
    if found is None:
        return False
    if Path(found).absolute().parent == Path(sys.executable).absolute().parent or found == interpreter.program():
        return True
    path = os.pathsep.join([*archives, *filter(None, [os.environ.get("PYTHONPATH")])])
    # -B and another folder: the question leaves no files, and answers nothing for what is in this folder by chance
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    try:
        return not subprocess.run([found, "-B", "-c", _ASK], env=environment, timeout=_TIMEOUT_S).returncode
    except (OSError, subprocess.SubprocessError):
        return False


def _archives(context: SparkContext) -> list[str]:
    from pyspark import SparkFiles

    return [SparkFiles.get(name) for name in context._python_includes or ()]


def _is_default(context: SparkContext) -> bool:
    conf = context.getConf()
    return "PYSPARK_PYTHON" not in os.environ and not any(conf.contains(entry) for entry in _ENTRIES)
