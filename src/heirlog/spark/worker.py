"""What a Spark worker pays once instead of with every task.

Behind each task Spark has the worker collect all garbage before it takes the next one. That walks through everything
that PySpark, PyArrow and numba have loaded: 40 ms and more, and a micro-batch has several tasks per core. What is there
behind the first task, when the kernels have run, stays for the life of the process: the collector is told to pass it
over. Once only, or what later tasks leave behind would stay as well.
"""

from __future__ import annotations

import functools
import gc

from pyspark import TaskContext


@functools.cache
def settle() -> None:
    """To be called at the end of a task. Elsewhere the process is not ours: nothing is done."""
    if TaskContext.get() is not None:
        gc.freeze()
