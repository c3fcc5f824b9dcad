"""The data source as a class that any Python can unpickle: what it needs is imported when Spark uses it.

Spark's Python processes are not the user's: they run the `python3` of PATH unless PYSPARK_PYTHON names another one. If
that Python has no heirlog, a class of heirlog cannot even be unpickled there. So `register` sends this class by value,
and it says in one sentence what is missing and what to set. This happens when Spark plans a query, before a job starts.

This module imports PySpark and nothing of heirlog: what is sent by value must not refer to heirlog.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from importlib.util import find_spec
from typing import Any

from pyspark.sql.datasource import DataSource


class DeferredDataSource(DataSource):
    """Creates a `HeirlogDataSource` when Spark calls it with options."""

    def __new__(cls, options: MutableMapping[str, str]) -> Any:
        missing = [name for name in ("heirlog", "pyarrow", "numba") if find_spec(name) is None]
        if missing:
            raise ImportError(
                f"the Python of Spark's workers, {sys.executable}, does not have {' and '.join(missing)}: install "
                f"heirlog[spark] there, or set PYSPARK_PYTHON to a Python that has it before Spark starts"
            )
        from heirlog.spark.source import HeirlogDataSource

        return HeirlogDataSource(options)

    @classmethod
    def name(cls) -> str:
        return "heirlog"
