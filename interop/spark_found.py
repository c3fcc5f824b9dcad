"""The source where nobody registers it: spark-sql, spark-submit, a script without an activated environment, Connect.

Each starts a JVM of its own, as a user does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jars
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.spark import java
from heirlog.testing.cluster import Cluster

RECORDS = 60
RUN_S = 300
BIN = Path(sys.executable).parent
COUNT = """
import sys
{before}
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false"){remote}.getOrCreate()
{after}
rows = spark.read.format("heirlog").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "T").load()
print("rows:", rows.count())
spark.stop()
"""
WITHOUT_SPARK_UI = ("--conf", "spark.ui.enabled=false")


def check() -> str:
    """Each way counts the same records."""
    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    java.provide()
    activated = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    activated.pop("PYSPARK_PYTHON", None)
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place, Cluster(nodes=1, ledger=False) as cluster:
        servers = cluster.bootstrap_servers
        _fill(servers)
        plain = _script(place, "plain.py")
        view = f"CREATE TEMPORARY VIEW v USING heirlog OPTIONS ('kafka.bootstrap.servers' '{servers}', subscribe 'T')"
        sql = ["spark-sql", *WITHOUT_SPARK_UI, "-e", f"{view}; SELECT concat('rows: ', count(*)) FROM v;"]
        _counts(sql, activated, place)
        _counts(["spark-submit", *WITHOUT_SPARK_UI, plain, servers], activated, place)
        # as a server that a client starts on its own machine, at any port
        connect = _script(place, "connect.py", remote='.remote("local[2]")')
        _counts([sys.executable, connect, servers], {**activated, "SPARK_TESTING": "1"}, place)
        _without_activation(place, servers)
    return f"{RECORDS} rows through spark-sql, spark-submit, Connect, and a script without an activated environment"


def _without_activation(place: str, servers: str) -> None:
    """`python3` of PATH is a Python without heirlog."""
    folder = Path(place) / "other"
    folder.mkdir()
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    path = os.pathsep.join([str(folder), *(part for part in os.environ["PATH"].split(os.pathsep) if part != str(BIN))])
    environment = {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("PYSPARK_PYTHON", None)
    register = {"before": "import heirlog.spark", "after": "heirlog.spark.register(spark)"}
    _counts([sys.executable, _script(place, "registered.py", **register), servers], environment, place)
    connect = _script(place, "over_connect.py", remote='.remote("local[2]")', **register)
    ended = _run([sys.executable, connect, servers], {**environment, "SPARK_TESTING": "1"}, place)
    assert ended.returncode and "does not have heirlog" in ended.stderr, ended.stderr[-3000:]


def _script(place: str, name: str, before: str = "", after: str = "", remote: str = "") -> str:
    file = Path(place) / name
    file.write_text(COUNT.format(before=before, after=after, remote=remote))
    return str(file)


def _counts(command: list[str], environment: dict[str, str], place: str) -> None:
    ended = _run(command, environment, place)
    assert f"rows: {RECORDS}" in ended.stdout.splitlines(), f"{command[0]}: {ended.stdout} {ended.stderr[-3000:]}"


def _run(command: list[str], environment: dict[str, str], place: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=RUN_S)


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("T", 2, 1)])["T"].result(30)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(RECORDS):
        producer.produce("T", str(number))
    assert not producer.flush(30)
