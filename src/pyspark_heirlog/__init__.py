"""What makes the format `heirlog` known to every Spark session whose Python has heirlog, without `register`.

At the first use of a data source that Spark's Java does not know, Spark imports each top-level module whose name begins
with `pyspark_` and takes its `DefaultSource`. An error here would take every other Python data source from the session,
so nothing is imported that may be missing: see `heirlog.spark.deferred`.
"""

from heirlog.spark.deferred import DeferredDataSource as DefaultSource

__all__ = ["DefaultSource"]
