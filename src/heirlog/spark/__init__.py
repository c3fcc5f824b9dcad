"""Data in and out of a cluster with Spark: the data source `heirlog`, and pipelines on it.

    import heirlog.spark
    heirlog.spark.register(spark)
    rows = spark.read.format("heirlog").option("kafka.bootstrap.servers", ...).option("subscribe", "t").load()
    heirlog.spark.write(rows, topic="u", **{"kafka.bootstrap.servers": ...})

Floor 9, the extra `heirlog[spark]`: the only package that imports pyspark, pyarrow and numba. No node imports it.

    kernels.py, decode.py, encode.py          record batches to and from Arrow, without Spark
    option_names.py, option_values.py         names and values of options, without Spark and without a cluster
    options.py, offset_limits.py, patterns.py what the options of a read mean
    sink_options.py                           what those of a write mean
    offsets.py                                what the offset of a stream contains
    plan.py, narrow.py, loss.py               which records a batch covers, and which are missing
    clients.py, resolve.py, read.py           requests to the cluster, and reading one range
    deferred.py, worker_python.py             found without registration; the Python of Spark's processes
    worker.py                                 work that a worker process does only once
    source.py, stream.py, sink.py, groups.py  what Spark calls
    partitioners.py, arranged.py              the rows of a topic and of a partition
    exactly_once.py, ledger.py                a batch of the sink as one transaction, and which one was committed
    java.py, interpreter.py, session.py       a Java and a Python to run on, a session on this machine
    pipeline/                                 pipelines that a file describes
    sweep/                                    many runs of the simulator
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["by_partition", "commit_progress", "register", "write"]

_REDACTION = "spark.sql.redaction.options.regex"
_SECRET_OPTIONS = r"(?i)url|secret|passw|token|jaas|keystore\.key|sasl|credential"


def register(spark: SparkSession) -> None:
    """Register the format `heirlog` with this session (classic or Connect), and hide secret options in its plans.

    In a session without `register` the format is known if Spark's Python has heirlog (`pyspark_heirlog`); here Spark's
    Python is also checked, and set if it is only Spark's default. Raises WorkerPythonError.
    """
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession as ClassicSession

    from heirlog.spark import deferred, worker_python

    if isinstance(spark, ClassicSession):
        worker_python.provide(spark.sparkContext)
    cloudpickle.register_pickle_by_value(deferred)  # type: ignore[no-untyped-call]
    spark.dataSource.register(deferred.DeferredDataSource)
    known = spark.conf.get(_REDACTION, "(?i)url") or "(?i)url"
    if _SECRET_OPTIONS not in known:
        spark.conf.set(_REDACTION, _SECRET_OPTIONS if known == "(?i)url" else f"{known}|{_SECRET_OPTIONS}")


def write(rows: DataFrame, **options: str | bool | int) -> None:
    """Append the rows to topics. The same as `rows.write.format("heirlog").mode("append")` with these options and
    `save()`.

    options: see docs/reference/spark.md. Pass options whose names have a dot as a mapping, `**{...}`. With exactlyOnce
    the rows pass through `by_partition` first.
    """
    texts = _texts(options)
    if any(name.lower() == "exactlyonce" and value.lower() == "true" for name, value in texts.items()):
        rows = by_partition(rows, **texts)
    rows.write.format("heirlog").mode("append").options(**texts).save()


def by_partition(rows: DataFrame, **options: str | bool | int) -> DataFrame:
    """The rows, batch or stream, arranged so that each partition is written by one task, as exactlyOnce requires.

    options: those of the sink.
    """
    from heirlog.spark import arranged

    return arranged.by_partition(rows, _texts(options))


def _texts(options: Mapping[str, str | bool | int]) -> dict[str, str]:
    """As Spark's own methods take options: true and numbers as such."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def commit_progress(query: StreamingQuery, group: str, options: Mapping[str, str]) -> None:
    """Commit the offsets that a stopped query has read to a consumer group, so that tools can show its lag."""
    from heirlog.spark import groups

    groups.commit_progress(query, group, options)
