"""The data source where nobody registered it, and where Spark's Python has no heirlog."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from spark.topics import Topics

import heirlog.spark
from heirlog.spark import deferred
from heirlog.spark.source import HeirlogDataSource
from heirlog.testing.cluster import Cluster

SOURCE = Path(heirlog.spark.__file__).parents[2]
PYSPARK = list(map(str, (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
OTHER_PYTHON = """
import pickle, sys
sys.path[:0] = sys.argv[2:]
found = pickle.loads(open(sys.argv[1], "rb").read())
print(found.name())
found({})
"""


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


@pytest.fixture
def unregistered(spark: SparkSession) -> SparkSession:
    """What was registered belongs to the session in which it was."""
    return spark.newSession()


def test_what_spark_looks_for_creates_our_data_source() -> None:
    found = importlib.import_module("pyspark_heirlog").DefaultSource
    # as Spark checks it
    assert issubclass(found, DataSource) and found.name() == "heirlog"
    assert isinstance(found({"subscribe": "t"}), HeirlogDataSource)


def test_a_session_reads_and_writes_without_register(unregistered: SparkSession, topics: Topics) -> None:
    topic, copy = topics.create(2), topics.create(1)
    topics.fill(topic, 40, 2)
    servers = {"kafka.bootstrap.servers": topics.servers}
    rows = unregistered.read.format("heirlog").options(**servers, subscribe=topic).load()
    assert rows.count() == 40
    rows.select("value").write.format("heirlog").mode("append").options(**servers, topic=copy).save()
    assert len(topics.read(copy)) == 40


def test_sql_reads_and_writes_topics_through_a_view_and_a_table(
    unregistered: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    topics.fill(topic, 40, 2)
    unregistered.sql(
        f"CREATE TEMPORARY VIEW sales USING heirlog "
        f"OPTIONS ('kafka.bootstrap.servers' '{topics.servers}', subscribe '{topic}')"
    )
    (row,) = unregistered.sql("SELECT count(*) n, max(offset) m FROM sales WHERE partition = 1").collect()
    assert (row.n, row.m) == (20, 19)
    # the options of a table do not reach a source written in Python: each statement has them
    unregistered.sql("CREATE TABLE kept_sales (key BINARY, value BINARY) USING heirlog")
    try:
        unregistered.sql(
            f"INSERT INTO kept_sales WITH ('kafka.bootstrap.servers' = '{topics.servers}', topic = '{topic}') "
            "VALUES (cast('k' AS BINARY), cast('v' AS BINARY))"
        )
        (row,) = unregistered.sql(
            f"SELECT count(*) n FROM kept_sales WITH ('kafka.bootstrap.servers' = '{topics.servers}', "
            f"subscribe = '{topic}', columns = 'key,value')"
        ).collect()
    finally:
        unregistered.sql("DROP TABLE kept_sales")
    assert row.n == 41


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT * FROM refused", "one of the following options must be specified: subscribe"),
        ("INSERT OVERWRITE TABLE view SELECT * FROM view", "overwrite is not allowed for a topic"),
        ("SELECT * FROM STREAM view", "not a temp view of streaming logical plan"),
        ("SELECT * FROM heirlog.`t`", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"),
        ("CREATE TABLE made USING heirlog AS SELECT cast('v' AS BINARY) value", "bootstrap.servers' must be specified"),
        ("SELECT * FROM other", "the source has a fixed schema"),
    ],
)
def test_sql_that_spark_refuses_says_why(unregistered: SparkSession, topics: Topics, statement: str, why: str) -> None:
    options = f"OPTIONS ('kafka.bootstrap.servers' '{topics.servers}', subscribe '{topics.create()}')"
    unregistered.sql(f"CREATE TEMPORARY VIEW view USING heirlog {options}")
    unregistered.sql(f"CREATE TEMPORARY VIEW other (value BINARY) USING heirlog {options}")
    unregistered.sql(f"CREATE TABLE refused USING heirlog {options}")
    try:
        with pytest.raises(Exception, match=why):
            unregistered.sql(statement).collect()
    finally:
        unregistered.sql("DROP TABLE refused")


@pytest.mark.parametrize(
    ("paths", "missing"),
    [([sysconfig.get_path("purelib")], "heirlog"), ([*PYSPARK, str(SOURCE)], "pyarrow and numba")],
)
def test_a_python_that_cannot_run_the_source_says_what_to_set(
    spark: SparkSession, tmp_path: Path, paths: list[str], missing: str
) -> None:
    heirlog.spark.register(spark)
    (tmp_path / "class").write_bytes(cloudpickle.dumps(deferred.DeferredDataSource))
    # without `site`, which leads to our sources
    command = [sys.executable, "-I", "-S", "-c", OTHER_PYTHON, str(tmp_path / "class"), *paths]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stdout == "heirlog\n"
    *_, last = ended.stderr.splitlines()
    assert last == (
        f"ImportError: the Python of Spark's workers, {sys.executable}, does not have {missing}: install "
        "heirlog[spark] there, or set PYSPARK_PYTHON to a Python that has it before Spark starts"
    )
