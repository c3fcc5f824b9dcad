"""A checkpoint serves one source and one sink."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heirlog.spark.pipeline.checkpoint import claim, planned_files, refuse_other_owner, refuse_patterns
from heirlog.spark.pipeline.load import parse
from heirlog.spark.pipeline.spec import Pipeline, PipelineError
from heirlog.spark.pipeline.table import BatchTable

TO_TOPIC = """\
name = "p"
checkpoint = "state/cp"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["t"]
[sink]
topic = "out"
"""
FILES = '[source]\nfiles = "in"\nformat = "text"\n[sink]\nbootstrap_servers = "127.0.0.1:1"\n'


def pipeline(folder: Path, text: str = TO_TOPIC) -> Pipeline:
    return parse(text, folder / "p.toml")


def begun(folder: Path, batches: int = 1) -> Path:
    """A checkpoint as Spark leaves it."""
    checkpoint = folder / "state" / "cp"
    (checkpoint / "commits").mkdir(parents=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "id-1"}))
    for number in range(batches):
        (checkpoint / "commits" / str(number)).write_text("v1\n{}\n")
    return checkpoint


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('topics = ["t"]', 'topics = ["u"]', "reads topics t, and this one reads topics u"),
        ('topics = ["t"]', 'topic_pattern = "t-.*"', "reads topics t, and this one reads pattern t-"),
        ('topic = "out"', 'topic = "elsewhere"', "writes to topic out, and this one writes to topic elsewhere"),
        ('topic = "out"', 'table = "lake"', "writes to topic out, and this one writes to table of Parquet"),
        ('topic = "out"', 'table = "lake"\nformat = "delta"', "and this one writes to table ../../lake"),
    ],
)
def test_another_pipeline_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    begun(tmp_path)
    claim(pipeline(tmp_path))
    refuse_other_owner(pipeline(tmp_path, TO_TOPIC.replace("127.0.0.1:1", "127.0.0.1:2").replace('"p"', '"q"')))
    with pytest.raises(PipelineError, match=why):
        refuse_other_owner(pipeline(tmp_path, TO_TOPIC.replace(old, new)))


def test_a_new_table_for_a_checkpoint_that_has_batches_behind_it_is_refused(tmp_path: Path) -> None:
    checkpoint = begun(tmp_path, 3)
    into_table = pipeline(tmp_path, TO_TOPIC.replace('topic = "out"', 'table = "lake"'))
    with pytest.raises(PipelineError, match=r"has 3 finished batches, and the table .*lake has none of them"):
        refuse_other_owner(into_table)
    BatchTable(str(tmp_path / "lake")).claim(str(checkpoint), "id-1", {})
    claim(into_table)
    (tmp_path / "lake").rename(tmp_path / "moved")
    refuse_other_owner(pipeline(tmp_path, TO_TOPIC.replace('topic = "out"', 'table = "moved"')))


def test_a_folder_with_everything_in_it_may_be_moved(tmp_path: Path) -> None:
    text = TO_TOPIC.partition("[source]")[0] + FILES + 'topic = "out"\n'
    begun(tmp_path / "before")
    claim(pipeline(tmp_path / "before", text))
    (tmp_path / "before").rename(tmp_path / "after")
    refuse_other_owner(pipeline(tmp_path / "after", text))
    with pytest.raises(PipelineError, match=r"reads files \.\./\.\./in, and this one reads files \.\./\.\./new"):
        refuse_other_owner(pipeline(tmp_path / "after", text.replace('"in"', '"new"')))


def test_files_whose_names_spark_takes_for_patterns_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    (log / "9").write_text("v1\n" + json.dumps({"path": "file:///in/a%5B1%5D.csv", "batchId": 9}))
    (log / "10").write_text("v1\n" + json.dumps({"path": "file:///in/a%20b%23.csv", "batchId": 10}))
    refuse_patterns(planned_files(str(tmp_path)))
    (log / "11").write_text("v1\n" + json.dumps({"path": "file:///in/a%3F.csv", "batchId": 11}))
    with pytest.raises(PipelineError, match=r"a\?.csv for a pattern and read other files twice: rename it"):
        refuse_patterns(planned_files(str(tmp_path)))
    assert planned_files(str(tmp_path / "absent")) == []
