"""Pipelines into topics: each row and each dead letter once, although runs end at every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from spark.committed import committed
from spark.topics import Topics

from heirlog.blocking import Client
from heirlog.spark.pipeline.batch import RUNS_AGAIN_MAX
from heirlog.spark.pipeline.check import check
from heirlog.spark.pipeline.checkpoint import known_id
from heirlog.spark.pipeline.run import run
from heirlog.spark.pipeline.spec import PipelineError, TopicSink
from heirlog.testing.cluster import Cluster

FILE = """\
name = "copied"
checkpoint = "checkpoint"

[source]
files = "in"
format = "json"
schema = "id BIGINT"
options = {{ maxFilesPerTrigger = 1 }}

[query]
over = "{over}"
sql = "SELECT string(id) AS value FROM input"

[sink]
topic = "{sink}"
bootstrap_servers = "{servers}"
{options}

[dead_letters]
topic = "{letters}"
bootstrap_servers = "{servers}"
"""


class CutError(Exception):
    """The run ends here."""


class Copy:
    def __init__(self, path: Path, topics: Topics, options: str = "", over: str = "batch") -> None:
        self.topics, self.path = topics, path
        self.sink, self.letters = topics.create(3), topics.create(1)
        self.file = path / "p.toml"
        names = {"sink": self.sink, "letters": self.letters, "servers": topics.servers}
        self.file.write_text(FILE.format(**names, options=options, over=over))
        (path / "in").mkdir()

    def put(self, name: str, ids: range) -> None:
        lines = [f'{{"id": {number}}}' for number in ids]
        (self.path / "in" / name).write_text("\n".join([*lines, f"broken {name}"]) + "\n")

    def rows(self) -> list[int]:
        return sorted(int(value) for value in committed(self.topics.servers, self.sink, 3))

    def refused(self) -> list[str]:
        return committed(self.topics.servers, self.letters, 1)


@pytest.fixture
def topics(cluster: Cluster) -> Topics:
    cluster.wait_until_ready()
    return Topics(cluster)


@pytest.mark.parametrize("step", ["staged", "renamed", "committed"])
def test_ended_at_each_step_and_run_again_each_row_is_there_once(
    tmp_path: Path, spark: SparkSession, topics: Topics, step: str
) -> None:
    copy = Copy(tmp_path, topics)
    for number, name in enumerate("abc"):
        copy.put(name, range(number * 10, number * 10 + 10))

    def fail(at: str, batch_id: int) -> None:
        if (at, batch_id) == (step, 1):
            raise CutError("cut here")

    with pytest.raises((CutError, PipelineError), match="cut here"):
        run(copy.file, spark, on_step=fail)
    assert len(copy.rows()) in (20, 30), "after a commit the next batch may have become visible before the end"
    run(copy.file, spark)
    assert copy.rows() == list(range(30))
    assert copy.refused() == ["broken a", "broken b", "broken c"]


def test_a_batch_without_a_note_of_spark_is_not_written_again(
    tmp_path: Path, spark: SparkSession, topics: Topics
) -> None:
    copy = Copy(tmp_path, topics)
    copy.put("a", range(10))
    first = run(copy.file, spark)
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    again = run(copy.file, spark)
    assert copy.rows() == list(range(10))
    assert copy.refused() == ["broken a"]
    assert (first.rows_in, first.rows_out, first.rejected) == (11, 10, 1)
    assert again.batches in (0, 1)


def test_its_transactional_ids_belong_to_the_checkpoint(tmp_path: Path, spark: SparkSession, topics: Topics) -> None:
    copy = Copy(tmp_path, topics)
    copy.put("a", range(1))
    run(copy.file, spark)
    known = known_id(str(tmp_path / "checkpoint"))
    with Client(topics.servers) as client:
        for purpose, topic in (("sink", copy.sink), ("dead-letters", copy.letters)):
            ledger = client.committed(f"heirlog-pipeline-{known}-{purpose}")
            assert [entry.metadata for entry in ledger.values()] == [f"{known}/0/{purpose}"]
            assert [place for place, _ in ledger] == [topic]


@pytest.mark.parametrize("options", ["options = { exactlyOnce = false }", 'options = { "kafka.acks" = "1" }'])
def test_transactions_can_be_switched_off(tmp_path: Path, spark: SparkSession, topics: Topics, options: str) -> None:
    copy = Copy(tmp_path, topics, options)
    assert not check(copy.file, None)
    copy.put("a", range(5))
    run(copy.file, spark)
    assert copy.rows() == list(range(5))
    with Client(topics.servers) as client:
        assert not client.committed(f"heirlog-pipeline-{known_id(str(tmp_path / 'checkpoint'))}-sink")


@pytest.mark.parametrize("over", ["batch", "stream"])
def test_a_task_that_fails_after_it_wrote_makes_the_batch_run_again(
    tmp_path: Path, spark: SparkSession, topics: Topics, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    """As a lost executor does it; here another attempt has claimed the first task of the first runs before. A query
    over the stream is started again together with that of the dead letters."""
    import heirlog.spark
    from heirlog.spark import exactly_once

    copy = Copy(tmp_path, topics, over=over)
    copy.put("a", range(10))
    failures = [0]
    original = heirlog.spark.write

    def write(rows, **options):  # type: ignore[no-untyped-def]
        if options["topic"] == copy.sink and failures[0] < RUNS_AGAIN_MAX:
            failures[0] += 1
            rows = rows.selectExpr(f"assert_true(false, '{exactly_once.RUN_AGAIN}') AS key", "value")
            rows = rows.selectExpr("string(key) AS key", "value")
        original(rows, **options)

    monkeypatch.setattr("heirlog.spark.write", write)
    run(copy.file, spark)
    assert failures == [RUNS_AGAIN_MAX]
    assert copy.rows() == list(range(10))
    assert copy.refused() == ["broken a"]


def test_a_file_may_name_the_transactional_id() -> None:
    sink = TopicSink("b:1", "t", {"kafka.transactional.id": "mine"})
    assert sink.batch_options("default", "7")["kafka.transactional.id"] == "mine"
