"""A stream with exactlyOnce, really killed at each step of a batch, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from spark.committed import committed
from spark.killing import STEP
from spark.topics import Topics

from heirlog.testing.cluster import Cluster

pytestmark = pytest.mark.skipif("HEIRLOG_ALL_KILLS" not in os.environ, reason="JVMs of its own: runs in .ci/run")

PARTITIONS = 3
ROWS = 400
STEPS = {
    "task": "a task's process, when it has written: its next attempt is refused, and the batch aborted",
    "tasks": "everything, when the first task has written",
    "written": "everything, when all tasks have written and nothing is decided",
    "offsets": "everything, when the ledger's entry is in the transaction and nothing is decided",
    "ended": "everything, when the request for the commit is sent and its answer is not there",
    "committed": "everything, when the transaction is committed and Spark has not noted it",
}


def run(step: str, cluster: Cluster, source: str, sink: str, folder: Path) -> int:
    """The exit code of the copying program."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "spark.killing", cluster.bootstrap_servers, source, sink, str(folder / "cp")]
    # not through pipes: the JVM outlives its driver for a moment and would hold them open
    with open(folder / f"output-{step}", "w") as output:
        return subprocess.run(
            command,
            stdout=output,
            stderr=output,
            timeout=200,
            start_new_session=True,
            env={**os.environ, STEP: step, "PYTHONPATH": path},
            check=False,
        ).returncode


def test_each_row_is_there_once_after_a_kill_at_each_step(cluster: Cluster, tmp_path: Path) -> None:
    topics = Topics(cluster)
    source, sink = topics.create(2), topics.create(PARTITIONS)
    topics.fill(source, ROWS, 2)
    for step in STEPS:
        code = run(step, cluster, source, sink, tmp_path)
        said = (tmp_path / f"output-{step}").read_text()
        if step == "task":
            assert code == 1 and "has written in this batch before" in said, said[-4000:]
        else:
            assert code == -signal.SIGKILL, said[-4000:]
    assert run("none", cluster, source, sink, tmp_path) == 0, (tmp_path / "output-none").read_text()[-4000:]
    assert committed(cluster.bootstrap_servers, sink, PARTITIONS) == sorted(str(number) for number in range(ROWS))
