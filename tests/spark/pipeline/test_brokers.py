"""A run whose brokers do not answer ends before it starts Spark."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from heirlog.spark.pipeline.brokers import problems, refuse_silent
from heirlog.spark.pipeline.load import parse
from heirlog.spark.pipeline.run import run
from heirlog.spark.pipeline.spec import PipelineError
from heirlog.testing.cluster import Cluster

FILE = """\
name = "copy"
checkpoint = "checkpoint"
[source]
topics = ["events"]
bootstrap_servers = "{source}"
[sink]
topic = "copies"
bootstrap_servers = "{sink}"
"""


@pytest.fixture
def closed() -> str:
    """The address of a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_a_cluster_that_does_not_run_is_named_before_spark_starts(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FILE.format(source=closed, sink=closed)
    pipeline = parse(text, tmp_path / "copy.toml")
    with pytest.raises(PipelineError, match=rf"{closed}, of \[source\]: .*{closed}.*Connection refused"):
        refuse_silent(pipeline, timeout_s=0.2)
    monkeypatch.setattr("heirlog.spark.pipeline.brokers.SAID_AFTER_S", 0.1)
    said: list[str] = []
    # a master that Spark does not know is refused only when Spark starts
    with pytest.raises(PipelineError, match="Connection refused"):
        run(pipeline, master="nonsense", brokers_timeout_s=0.3, on_wait=said.append)
    assert said == [f"no broker answers at {closed}, of [source]: waiting for at most 0.3 s"]
    assert [problem.line for problem in problems(pipeline, 0.2)] == [5, 8]


def test_the_brokers_of_each_sink_have_to_answer_too(cluster: Cluster, closed: str, tmp_path: Path) -> None:
    servers = cluster.bootstrap_servers
    reached = parse(FILE.format(source=servers, sink=servers), tmp_path / "copy.toml")
    # topics that are not there are for the query to refuse, or for brokers to create
    refuse_silent(reached, 30)
    silent = parse(FILE.format(source=servers, sink=closed), tmp_path / "copy.toml")
    with pytest.raises(PipelineError, match=rf"{closed}, of \[sink\]"):
        refuse_silent(silent, timeout_s=0.2)
