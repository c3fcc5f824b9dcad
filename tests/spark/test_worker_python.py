"""Which Python Spark's workers run, and what a session does about one without heirlog."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from heirlog.spark import register, worker_python
from heirlog.spark.pipeline.package import package
from heirlog.spark.worker_python import WorkerPythonError, has_heirlog

PIPELINE = """
name = "numbers"
checkpoint = "checkpoint"
[source]
files = "in"
format = "text"
[sink]
table = "out"
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python without heirlog, as `python3` of a PATH."""
    program = tmp_path_factory.mktemp("bin") / "python3"
    # the folder from which Python would find the packages of the environment is not beside this link
    program.symlink_to(os.path.realpath(sys.executable))
    return program


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.sparkContext.pythonExec
    yield spark
    spark.sparkContext.pythonExec = before


def test_a_python_that_has_heirlog_is_known_without_running_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_python.subprocess, "run", None)
    assert has_heirlog(sys.executable, [])


def test_a_python_elsewhere_is_asked(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert not has_heirlog(str(bare), [])
    assert not has_heirlog("no-such-python", [])
    # with an archive of heirlog its own libraries have to be there as well
    archive = str(package(tmp_path / "heirlog.zip"))
    assert not has_heirlog(str(bare), [archive])
    for name in ("pyarrow", "numba"):
        (tmp_path / f"{name}.py").touch()
    assert has_heirlog(str(bare), [archive, str(tmp_path)])


def test_the_default_python_is_replaced_by_this_one(
    session: SparkSession, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", f"{bare.parent}{os.pathsep}{os.environ['PATH']}")
    session.sparkContext.pythonExec = "python3"
    register(session)
    chosen = session.sparkContext.pythonExec
    assert chosen != "python3" and has_heirlog(chosen, [])
    assert session.range(3).rdd.map(lambda row: (row.id, sys.executable)).collect() == [
        (number, sys.executable) for number in range(3)
    ]


def test_a_python_that_the_user_chose_is_refused_in_one_sentence(
    session: SparkSession, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    session.sparkContext.pythonExec = str(bare)
    with pytest.raises(WorkerPythonError) as refused:
        register(session)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert str(refused.value) == (
        f"Spark's workers would run {bare}, which does not have heirlog[spark] for Python {version}: before Spark "
        f"starts, set PYSPARK_PYTHON to {sys.executable}, or to another Python {version} that has it"
    )


def test_a_command_says_it_in_one_sentence(bare: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    command = [sys.executable, "-m", "heirlog", "pipeline", "run", str(file)]
    environment = {**os.environ, "PYSPARK_PYTHON": str(bare)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("heirlog: ")]
    assert "does not have heirlog[spark]" in line
    assert "Traceback" not in ended.stderr


def test_another_python_in_the_same_folder_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /usr/bin/python3 beside /usr/bin/python3.13."""
    for name in ("python3", "python3.13"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3.13"))
    assert has_heirlog(str(tmp_path / "python3.13"), [])
    assert not has_heirlog(str(tmp_path / "python3"), [])
