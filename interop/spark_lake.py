"""Pipelines with packages of other people: Avro values, Delta tables; and over Spark Connect.

Each pipeline reads a topic in several batches. Those into tables are killed (SIGKILL on the driver) after the table has
committed a batch and before Spark has noted it, the moment at which a batch is written twice if nothing prevents it,
and are run again: every record is there once.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jars
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pyspark
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.spark import interpreter, java
from heirlog.testing.cluster import Cluster

RECORDS = 600
PARTITIONS = 3
PER_BATCH = 200
RUN_S = 240
JSON_VALUE = 'format = "json"\nschema = "id BIGINT, item STRING"'
CACHE = jars.CACHE / "lake-jars"
AVRO = ("org.apache.spark:spark-avro_2.13:4.2.0",)
DELTA = (
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
)
SCHEMA = '{"type":"record","name":"order","fields":[{"name":"id","type":"long"},{"name":"item","type":"string"}]}'
PIPELINE = """\
name = "{name}"
checkpoint = "checkpoint-{name}"
[source]
bootstrap_servers = "{bootstrap}"
topics = ["{topic}"]
options = {{ maxOffsetsPerTrigger = {per_batch} }}
[value]
{value}
[query]
sql = "SELECT value.id AS id, value.item AS item FROM input"
[sink]
{sink}
partition_by = ["item"]
[dead_letters]
table = "refused-{name}"
"""
KILLED = """\
import json, os, signal, sys
from heirlog.spark.pipeline.run import run
def kill(step, number):
    if (step, number) == ("staged", 1):
        os.kill(os.getpid(), signal.SIGKILL)
run(sys.argv[1], master="local[2]", conf=json.loads(sys.argv[2]), on_step=kill)
"""


def _varint(number: int) -> bytes:
    """Avro's long, of numbers that are not negative."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _avro_value(number: int) -> bytes:
    item = f"item{number % 3}".encode()
    return _varint(number) + _varint(len(item)) + item


def _fill(bootstrap: str, topic: str, values: Iterator[bytes]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def _blame(said: str) -> str:
    """The lines of a log that name an error, and its end."""
    named = [line[:500] for line in said.splitlines() if re.search(r"(Error|Exception|DataLoss): ", line)]
    return "\n".join([*dict.fromkeys(named), said[-500:]])


class _Job:
    """One pipeline file in `folder`, run by processes of their own."""

    def __init__(self, folder: Path, bootstrap: str, name: str, topic: str, value: str, sink: str) -> None:
        self.folder = folder
        self.file = folder / f"{name}.toml"
        places = {"name": name, "bootstrap": bootstrap, "topic": topic, "per_batch": PER_BATCH}
        self.file.write_text(PIPELINE.format(**places, value=value, sink=sink))

    def kill_in_second_batch(self, conf: dict[str, str]) -> None:
        ended = self._python("-c", KILLED, str(self.file), json.dumps(conf))
        assert ended.returncode == -signal.SIGKILL, _blame(ended.stderr)

    def run(self, conf: dict[str, str], master: str = "local[2]") -> dict[str, Any]:
        settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        command = ("-m", "heirlog", "pipeline", "run", str(self.file), "--json", "--master", master, *settings)
        ended = self._python(*command)
        assert ended.returncode == 0, _blame(ended.stderr)
        report: dict[str, Any] = json.loads(ended.stdout)
        return report

    def _python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # not through pipes: the JVM outlives a killed driver for a moment and would hold them open
        with open(self.folder / "out", "w+") as out, open(self.folder / "err", "w+") as err:
            ended = subprocess.run([sys.executable, *arguments], stdout=out, stderr=err, cwd=self.folder, timeout=RUN_S)
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(ended.args, ended.returncode, out.read(), err.read())


def _fetched(artifacts: Sequence[str]) -> list[Path]:
    return [path for path in _all_fetched() if path.name in {_file(artifact) for artifact in artifacts}]


@functools.cache
def _all_fetched() -> list[Path]:
    return jars.fetch_single((*AVRO, *DELTA), CACHE, jars.HERE / "lake-jars.sha256")


def _file(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


@contextmanager
def _cluster() -> Iterator[tuple[Path, str]]:
    """A folder, and a broker with a topic of JSON orders and one of Avro orders, of which the last three are none."""
    jars.need("java", "mvn", install="a JDK and Maven (on Debian: apt install openjdk-17-jdk-headless maven)")
    java.provide()
    with (
        tempfile.TemporaryDirectory(prefix="heirlog-lake-") as folder,
        Cluster(nodes=1, combined=True, ledger=False) as cluster,
    ):
        bootstrap = cluster.bootstrap_servers
        rows = ({"id": number, "item": f"item{number % 3}"} for number in range(RECORDS))
        _fill(bootstrap, "json", (json.dumps(row).encode() for row in rows))
        good = [_avro_value(number) for number in range(RECORDS)]
        _fill(bootstrap, "avro", iter([*good, *(good[1][:-1], good[1] + b"x", b"")]))
        yield Path(folder), bootstrap


def avro() -> str:
    """Values in Avro: each becomes columns, and what is none is kept apart."""
    with _cluster() as (folder, bootstrap):
        value = f"format = \"avro\"\nschema = '{SCHEMA}'"
        job = _Job(folder, bootstrap, "avro", "avro", value, 'table = "lake-avro"')
        report = job.run({"spark.jars": ",".join(map(str, _fetched(AVRO)))})
        assert (report["rows_out"], report["rejected"]) == (RECORDS, 3), report
        _once(
            pyarrow.dataset.dataset(folder / "lake-avro", format="parquet", partitioning="hive").to_table(), "lake-avro"
        )
        refused = pyarrow.dataset.dataset(folder / "refused-avro", format="parquet", partitioning="hive").to_table()
        assert refused.column("reason").to_pylist() == ["the value is not Avro of the given schema"] * 3
        return f"{RECORDS} values of Avro, and three that are cut, too long or empty"


def delta() -> str:
    with _cluster() as (folder, bootstrap):
        conf = {
            "spark.jars": ",".join(map(str, _fetched(DELTA))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        table = str(folder / "lake-delta")
        job = _Job(folder, bootstrap, "delta", "json", JSON_VALUE, f'table = "{table}"\nformat = "delta"')
        job.kill_in_second_batch(conf)
        report = job.run(conf)
        _once(_delta_rows(Path(table)), table)
        return (
            f"{RECORDS} rows once in Delta, killed behind its commit of a batch, {report['batches']} batches afterwards"
        )


def _delta_rows(table: Path) -> pyarrow.Table:
    """What a reader of the bare directory sees: the files that the table's log has added and not removed."""
    files: dict[str, dict[str, str]] = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            if "add" in action:
                files[action["add"]["path"]] = action["add"]["partitionValues"]
            elif "remove" in action:
                del files[action["remove"]["path"]]
    parts = []
    for file, values in files.items():
        part = pyarrow.parquet.ParquetFile(table / file).read()
        # Delta may write a partition's columns into its files too; what the log says counts
        part = part.drop_columns([name for name in values if name in part.column_names])
        for name, value in values.items():
            part = part.append_column(name, pyarrow.array([value] * part.num_rows))
        parts.append(part)
    return pyarrow.concat_tables(parts)


def _once(found: pyarrow.Table, table: str) -> None:
    ids = sorted(found.column("id").to_pylist())
    assert ids == list(range(RECORDS)), f"{table}: {len(ids)} rows, {len(set(ids))} different ones"
    assert set(found.column("item").to_pylist()) == {"item0", "item1", "item2"}


@contextmanager
def _connect_server(folder: Path) -> Iterator[str]:
    """Spark's own server, ended by its handle; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": interpreter.program()}
    with open(folder / "server.log", "wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            deadline = time.monotonic() + RUN_S
            while not _listens(port):
                said = (folder / "server.log").read_text(errors="replace")[-3000:]
                assert server.poll() is None and time.monotonic() < deadline, f"no Spark Connect server: {said}"
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(30)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def connect() -> str:
    """A pipeline over Spark Connect: the batches run in the server's Python, file and report are the client's."""
    with _cluster() as (folder, bootstrap), _connect_server(folder) as address:
        job = _Job(folder, bootstrap, "connect", "json", JSON_VALUE, 'table = "lake-connect"')
        report = job.run({}, address)
        assert (report["rows_in"], report["rows_out"]) == (RECORDS, RECORDS), report
        _once(
            pyarrow.dataset.dataset(folder / "lake-connect", format="parquet", partitioning="hive").to_table(),
            "connect",
        )
        return f"{RECORDS} rows in {report['batches']} batches through {address}"
