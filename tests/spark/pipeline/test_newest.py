"""Values of several schemas: by a registry's ids, with columns that grow, and of topics of different kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from spark.schemas.answers import Answers, registry_answers
from spark.schemas.test_functions import NEW, OLD, avro
from spark.topics import Topics

from heirlog.spark.pipeline.batch import meaning
from heirlog.spark.pipeline.check import check
from heirlog.spark.pipeline.load import load
from heirlog.spark.pipeline.newest import kept_newest
from heirlog.spark.pipeline.run import run
from heirlog.spark.pipeline.spec import PipelineError
from heirlog.testing.cluster import Cluster

LATEST = "/subjects/orders-value/versions/latest"
FILE = """\
name = "grows"
checkpoint = "checkpoint"
[source]
bootstrap_servers = "{servers}"
topics = ["{topic}"]
[value]
format = "avro"
registry = "{url}"
subject = "orders-value"
[query]
sql = "SELECT schema_id, value.* FROM input WHERE value IS NOT NULL"
[sink]
table = "out"
[dead_letters]
table = "refused"
"""
KINDS = """\
name = "kinds"
checkpoint = "checkpoint"
[source]
bootstrap_servers = "{servers}"
topics = ["{orders}", "{clicks}", "{other}"]
[value]
registry = {{ url = "{url}", username = "reader", password = "hidden" }}
[value.order]
topics = ["{orders}"]
format = "avro"
subject = "orders-value"
[value.click]
topics = ["{clicks}"]
format = "json"
schema = "url STRING"
[query]
sql = "SELECT topic, schema_id, value.order.id, value.click.url FROM input"
[sink]
table = "out"
[dead_letters]
table = "refused"
"""


@pytest.fixture
def answers() -> Iterator[Answers]:
    with registry_answers() as started:
        started.of["/schemas/ids/1"] = {"schema": json.dumps(OLD)}
        started.of["/schemas/ids/2"] = {"schema": json.dumps(NEW)}
        started.of[LATEST] = {"schema": json.dumps(OLD)}
        yield started


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


def batch(folder: Path, number: int, table: str = "out") -> list[dict[str, Any]]:
    files = sorted((folder / table / f"batch_id={number}").glob("*.parquet"))
    return [row for file in files for row in pyarrow.parquet.ParquetFile(file).read().to_pylist()]


def order(number: int, schema_id: int = 1) -> bytes:
    value = {"id": number, "gone": "x"} if schema_id == 1 else {"id": number, "item": "tea", "at": None, "tags": {}}
    return avro(schema_id, OLD if schema_id == 1 else NEW, value)


def test_the_columns_of_a_table_grow_with_the_newest_schema_of_a_subject(
    spark: SparkSession, topics: Topics, answers: Answers, tmp_path: Path
) -> None:
    topic, file = topics.create(1), tmp_path / "p.toml"
    file.write_text(FILE.format(servers=topics.servers, topic=topic, url=answers.url))
    assert check(file, spark) == []
    topics.produce(topic, ({"value": value} for value in (order(1), b"no avro", None)))
    assert run(file, spark).rejected == 1
    assert batch(tmp_path, 0) == [{"schema_id": 1, "id": 1, "gone": "x"}]

    answers.of[LATEST] = {"schema": json.dumps(NEW)}
    # values with a schema that is unknown, or cannot become the newest one, are kept apart too
    bad = (b"\0\0\0\0\x09\2\2a", b"\0\0\0\0\1")
    topics.produce(topic, ({"value": value} for value in (order(2), order(3, 2), *bad)))
    assert run(file, spark).rejected == 2
    assert [(row["schema_id"], row["id"], row["item"]) for row in batch(tmp_path, 1)] == [(1, 2, "none"), (2, 3, "tea")]


def test_a_batch_that_runs_again_has_the_schema_of_its_first_run(answers: Answers, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(FILE.format(servers="127.0.0.1:1", topic="t", url=answers.url))
    values = load(file).values
    first = kept_newest(values, str(tmp_path), 0)
    answers.of[LATEST] = {"schema": json.dumps(NEW)}
    assert kept_newest(values, str(tmp_path), 0) == first
    second = kept_newest(values, str(tmp_path), 1)
    assert json.loads(first[""].text) == OLD and json.loads(second[""].text) == NEW
    answers.of[LATEST] = 404
    with pytest.raises(PipelineError, match="has no subject orders-value"):
        kept_newest(values, str(tmp_path), 2)


def test_topics_of_different_kinds_become_members_of_value(
    spark: SparkSession, topics: Topics, answers: Answers, tmp_path: Path
) -> None:
    orders, clicks, other = (topics.create(1) for _ in range(3))
    file = tmp_path / "p.toml"
    file.write_text(KINDS.format(servers=topics.servers, orders=orders, clicks=clicks, other=other, url=answers.url))
    assert check(file, spark) == []
    topics.produce(orders, ({"value": value} for value in (order(7), b'{"url": "/not/avro"}')))
    topics.produce(clicks, ({"value": value} for value in (b'{"url": "/"}', order(8), b'{"url": 1} x')))
    topics.produce(other, ({"value": value} for value in (b'{"url": "/"}', None)))
    report = run(file, spark)
    assert (report.rows_in, report.rows_out, report.rejected) == (7, 3, 4)
    found = {row["topic"]: (row["schema_id"], row["id"], row["url"]) for row in batch(tmp_path, 0)}
    assert found == {orders: (1, 7, None), clicks: (None, None, "/"), other: (None, None, None)}
    refused = batch(tmp_path, 0, "refused")
    assert {(row["topic"], row["value"], row["reason"].partition(",")[0]) for row in refused} == {
        (orders, b'{"url": "/not/avro"}', "the value is not Avro of a schema in the registry"),
        (clicks, order(8), "the value is not one JSON object of the given schema"),
        (clicks, b'{"url": 1} x', "the value is not one JSON object of the given schema"),
        (other, b'{"url": "/"}', "no [value.NAME] has this topic in its `topics`"),
    }
    # neither is part of what a batch means: both may change
    assert "hidden" not in json.dumps(meaning(load(file))) and answers.url not in json.dumps(meaning(load(file)))
