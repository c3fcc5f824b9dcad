"""Sums over batches, each counted once, and what Prometheus and a status make of them."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path

import pytest

from heirlog.spark.offsets import StreamOffset
from heirlog.spark.pipeline.checkpoint import flush_plan, offset_log
from heirlog.spark.pipeline.load import parse
from heirlog.spark.pipeline.metrics import PipelineCollector, served
from heirlog.spark.pipeline.report import Batch, Journal, covered_by, sums_of
from heirlog.spark.pipeline.spec import Pipeline
from heirlog.spark.pipeline.status import status

FILE = """\
name = "p"
checkpoint = "cp"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["t"]
[sink]
table = "out"
"""
LOSS = {"topic": "t", "partition": 0, "first": 1, "until": 4, "resume": 4, "cause": "retention"}


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    (tmp_path / "cp" / "offsets").mkdir(parents=True)
    (tmp_path / "cp" / "commits").mkdir()
    return parse(FILE, tmp_path / "p.toml")


def batch(number: int, first: int, after: int, losses: list[dict[str, object]] | None = None) -> Batch:
    return Batch(
        number, after - first, after - first, 0, {"t": {"0": [first, after]}}, 1000 * number, 500, losses or []
    )


def test_a_batch_that_runs_again_is_counted_once(pipeline: Pipeline) -> None:
    journal = Journal(pipeline.checkpoint)
    for number, first, after in ((0, 5, 10), (1, 10, 20), (1, 10, 20)):
        journal.add(batch(number, first, after))
    through, sums, batches = journal.read()
    assert (through, sums.batches, sums.rows_in, sums.offsets) == (1, 2, 15, {"t": {"0": [5, 20]}})
    assert [known.batch_id for known in batches] == [0, 1]


def test_only_the_last_hundred_batches_are_kept_one_by_one(pipeline: Pipeline) -> None:
    journal = Journal(pipeline.checkpoint)
    for number in range(105):
        journal.add(batch(number, number, number + 1, [LOSS]))
    through, sums, batches = journal.read()
    assert (through, sums.rows_in, len(batches), batches[0].batch_id) == (104, 105, 100, 5)
    assert len(sums.losses) == 100 and sums.lost == {"retention": 105}


def test_offsets_begin_where_the_batch_before_ended_or_where_the_first_record_was() -> None:
    before = StreamOffset({("t", 0): 7})
    after = StreamOffset({("t", 0): 9, ("t", 1): 30, ("t", 2): 0})
    assert covered_by(before, after, {("t", 1): 20}) == {"t": {"0": [7, 9], "1": [20, 30]}}


def test_what_a_source_of_files_notes_is_no_offset(pipeline: Pipeline) -> None:
    Path(pipeline.checkpoint, "offsets", "0").write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}\n')
    assert offset_log(pipeline.checkpoint, 0).offsets == {}
    assert offset_log(pipeline.checkpoint, 1).offsets == {}


def test_rejected_rows_that_a_query_of_their_own_writes_are_counted_with_the_others(pipeline: Pipeline) -> None:
    text = '[query]\nover = "stream"\nsql = "SELECT * FROM input"\n[dead_letters]\ntable = "refused"\n'
    streaming = parse(FILE + text, Path(pipeline.checkpoint).parent / "p.toml")
    main, aside = streaming.parts
    Journal(main.checkpoint).add(batch(0, 0, 5))
    Path(aside.checkpoint).mkdir()
    Journal(aside.checkpoint).add(batch(0, 0, 2))
    assert (sums_of(streaming).rows_in, sums_of(streaming).rejected) == (5, 2)
    assert status(streaming, timeout_s=0.5).sums.rejected == 2
    (metric,) = (one for one in PipelineCollector(streaming).collect() if one.name == "heirlog_pipeline_rows_rejected")
    assert metric.samples[0].value == 2


def test_metrics_are_served_while_the_block_runs(pipeline: Pipeline) -> None:
    Journal(pipeline.checkpoint).add(batch(0, 0, 4, [LOSS]))
    with served(pipeline, 0) as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert 'heirlog_pipeline_rows_in_total{pipeline="p"} 4.0' in text
    assert 'heirlog_pipeline_losses_total{cause="retention",pipeline="p"} 1.0' in text
    assert 'heirlog_pipeline_batch_seconds{pipeline="p"} 0.5' in text


def test_a_status_without_brokers_shows_positions_and_says_why_there_is_no_lag(pipeline: Pipeline) -> None:
    Path(pipeline.checkpoint, "offsets", "3").write_text("v1\n{}\n" + json.dumps({"t": {"0": 12}}) + "\n")
    Path(pipeline.checkpoint, "commits", "3").write_text("v1\n{}\n")
    Journal(pipeline.checkpoint).add(batch(3, 2, 12))
    seen = status(pipeline, timeout_s=0.5)
    (row,) = seen.partitions
    assert (row.position, row.latest, row.lag) == (12, None, None)
    assert seen.committed == 3 and seen.trouble is not None and seen.rate == 20


def test_what_spark_noted_of_a_batch_is_flushed_wherever_it_noted_it(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(pipeline.checkpoint)
    (root / "sources" / "0").mkdir(parents=True)
    noted = ("metadata", "offsets/3", "sources/0/9", "sources/0/10.compact", "sources/0/.11.tmp")
    for name in noted:
        (root / name).write_text("{}")
    flushed: list[str] = []
    fsync = os.fsync

    def listen(handle: int) -> None:
        flushed.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), root.resolve()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", listen)
    flush_plan(pipeline.checkpoint, 3)
    assert flushed == ["metadata", ".", "offsets/3", "offsets", "sources/0/10.compact", "sources/0"]
