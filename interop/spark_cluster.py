"""A pipeline on a standalone Spark cluster: a master and two workers, one of which has no heirlog.

The second worker's Python is the same interpreter with the libraries of our environment and without heirlog: the tree
is installed by a .pth file, and a folder on PYTHONPATH is not searched for those. So without `--py-files` a task there
fails for want of heirlog, and with the archive of `heirlog pipeline package` it works. Each worker offers one core, and
the topic has eight partitions, so both get tasks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import jars
import pyarrow.dataset
import pyspark
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from heirlog.spark import java
from heirlog.testing.cluster import Cluster

PARTITIONS = 8
RECORDS = 4000
HOST = "127.0.0.1"
READY_S = 120
RUN_S = 300
PYTHON = "heirlog-worker-python"
"""The name under which each worker finds its own Python."""
BOTH_WORKERS = {
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{READY_S}s",
}
"""No task begins before both are there: else the one that is early may do all of the work."""
PIPELINE = """\
name = "cluster"
checkpoint = "checkpoint"
[source]
bootstrap_servers = "{bootstrap}"
topics = ["T"]
[value]
format = "json"
schema = "id BIGINT"
[query]
sql = "SELECT value.id AS id, partition FROM input"
[sink]
table = "{table}"
"""


def check() -> str:
    """The pipeline fails without the archive, by name, and holds each record once with it."""
    jars.need("java", install="a JDK (on Debian: apt install openjdk-17-jdk-headless)")
    java.provide()
    with tempfile.TemporaryDirectory(prefix="heirlog-interop-") as place, Cluster(nodes=1, ledger=False) as cluster:
        folder = Path(place)
        _fill(cluster.bootstrap_servers)
        with two_workers(folder) as address:
            return _pipelines(folder, address, cluster.bootstrap_servers)


@contextmanager
def two_workers(folder: Path, second_host: str = HOST) -> Iterator[str]:
    """The address of a standalone master with two workers, one of them without heirlog; their logs are in `folder`.

    second_host: of the worker without heirlog. Java must be provided.
    """
    without = {"PYTHONPATH": sysconfig.get_path("purelib")}
    with ExitStack() as stack:
        master = stack.enter_context(_daemon(folder, "master", {}, HOST, "deploy.master.Master", "--webui-port", "0"))
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        for name, paths, host in (("with", {}, HOST), ("without", without, second_host)):
            python = sys.executable if name == "with" else os.path.realpath(sys.executable)
            environment = {**paths, "PATH": f"{_python(folder / name, python)}:{os.environ['PATH']}"}
            worker = ("deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", address)
            _said(
                stack.enter_context(_daemon(folder, name, environment, host, *worker)),
                r"Successfully registered with master",
            )
        yield address


def command(*arguments: str, master: str) -> list[str]:
    """A command of heirlog that uses both workers."""
    # the driver's own Python plans, the workers' work: each finds it by name
    settings = {"spark.pyspark.python": PYTHON, "spark.executor.memory": "512m", **BOTH_WORKERS}
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [sys.executable, "-m", "heirlog", *arguments, "--master", master, *conf]


def variables(folder: Path) -> dict[str, str]:
    """The environment of such a command."""
    path = f"{folder / 'with'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": PYTHON}


def archive_in(folder: Path) -> Path:
    archive = folder / "heirlog.zip"
    subprocess.run([sys.executable, "-m", "heirlog", "pipeline", "package", str(archive)], check=True)
    return archive


def _pipelines(folder: Path, address: str, bootstrap: str) -> str:
    # a task that failed could try again on the other worker
    refused = _run(folder, "refused", address, bootstrap, "--conf", "spark.task.maxFailures=1")
    assert refused.returncode == 1 and "heirlog" in refused.stderr, f"{refused.returncode}: {refused.stderr[-2000:]}"
    archive = archive_in(folder)
    done = _run(folder, "table", address, bootstrap, "--conf", f"spark.submit.pyFiles={archive}")
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    rows = pyarrow.dataset.dataset(folder / "table", format="parquet", partitioning="hive").to_table()
    assert sorted(rows.column("id").to_pylist()) == list(range(RECORDS)), f"{rows.num_rows} rows, {report}"
    return f"{report['rows_out']} rows of {PARTITIONS} partitions on two workers, one without heirlog"


def _fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("T", PARTITIONS, 1)])["T"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("T", json.dumps({"id": number}), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def _python(folder: Path, target: str) -> Path:
    """A folder for PATH with a Python under the name that the driver asks for."""
    folder.mkdir()
    script = folder / PYTHON
    script.write_text(f'#!/bin/sh\nexec {target} "$@"\n')
    script.chmod(0o755)
    return folder


@contextmanager
def _daemon(
    folder: Path, name: str, environment: dict[str, str], host: str, main: str, *arguments: str
) -> Iterator[Path]:
    """One of Spark's own processes, ended by its handle; gives its log."""
    log = folder / f"{name}.log"
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.{main}", "--host", host, "--port", "0"]
    own = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work"), **environment}
    with open(log, "wb") as output:
        process = subprocess.Popen([*program, *arguments], env=own, stdout=output, stderr=output, cwd=folder)
        try:
            yield log
        finally:
            process.terminate()
            process.wait(30)


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[found.lastindex or 0]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} did not say {pattern!r}: {log.read_text(errors='replace')[-2000:]}")


def _run(folder: Path, table: str, master: str, bootstrap: str, *more: str) -> subprocess.CompletedProcess[str]:
    place = folder / f"{table}-run"
    place.mkdir()
    (place / "p.toml").write_text(PIPELINE.format(bootstrap=bootstrap, table=folder / table))
    arguments = [*command("pipeline", "run", "p.toml", "--json", master=master), *more]
    return subprocess.run(arguments, cwd=place, env=variables(folder), capture_output=True, text=True, timeout=RUN_S)
