"""Every file under examples/ runs and does what its first lines say."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.dataset
import pytest
from cli.json_shapes import mistakes_of
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from heirlog.blocking import Client, CommittedOffset
from heirlog.cli.pipeline import status_json
from heirlog.spark.pipeline.check import check
from heirlog.spark.pipeline.load import load
from heirlog.spark.pipeline.run import run
from heirlog.spark.pipeline.status import status
from heirlog.testing.cluster import Cluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
START_MS = 1_700_000_000_000 // DAY_MS * DAY_MS


@pytest.fixture(scope="module")
def brokers(cluster: Cluster) -> str:
    """A cluster with the topics of the examples; orders on two days, one of them no JSON."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    topics = [NewTopic(name, 2, 3) for name in ("orders", "payments", "orders-refused", "imported")]
    for created in admin.create_topics(topics).values():
        created.result(60)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(20):
        order = json.dumps({"id": number, "item": f"item{number % 2}", "price": 1.5})
        at_ms = START_MS + number * MINUTE_MS // 10 + (DAY_MS if number >= 15 else 0)
        producer.produce("orders", order, str(number), timestamp=at_ms)
        payment = json.dumps({"id": number, "amount": 1.5})
        if number % 2 == 0:
            producer.produce("payments", payment, str(number), timestamp=at_ms + 1000)
    producer.produce("orders", b"no order", b"odd", timestamp=START_MS)
    assert producer.flush(60) == 0
    return cluster.bootstrap_servers


@pytest.fixture
def here(tmp_path: Path, brokers: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, so that their relative paths lie in a folder of the test."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("HEIRLOG_BOOTSTRAP", brokers)
    return tmp_path


def rows(path: Path) -> list[dict[str, Any]]:
    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()


def module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = found
    spec.loader.exec_module(found)
    return found


def test_the_pipeline_for_kubernetes_runs(here: Path, spark: SparkSession) -> None:
    manifest = (here / "kubernetes" / "pipeline.yaml").read_text()
    _, _, indented = manifest.partition("  orders.toml: |\n")
    text = textwrap.dedent(indented.partition("---\n")[0])
    file = here / "orders.toml"
    file.write_text(text.replace("/data/", f"{here}/data/"))
    report = run(file, spark)
    assert (report.rows_in, report.rows_out, report.rejected) == (21, 20, 1)
    assert len({row["day"] for row in rows(here / "data" / "lake" / "orders")}) == 2


def test_a_lake_by_day_takes_good_orders_and_stops_at_a_bad_one(here: Path, spark: SparkSession, brokers: str) -> None:
    file = here / "lake_by_day.toml"
    assert check(file, spark) == []
    with pytest.raises(Exception, match="1 of 21 rows do not parse"):
        run(file, spark)
    # as the sentence says: rows that do not parse need a place; and a tool that watches lags sees the group
    text = file.read_text().replace('topics = ["orders"]', 'topics = ["orders"]\noptions = { commitGroup = "lake" }')
    file.write_text(text + '\n[dead_letters]\ntable = "lake/refused"\n')
    report = run(file, spark)
    assert (report.rows_in, report.rows_out, report.rejected) == (21, 20, 1)
    assert sum(end - first for first, end in report.offsets["orders"].values()) == 21
    table = rows(here / "lake" / "orders")
    assert sorted(row["id"] for row in table) == list(range(20))
    assert len({row["day"] for row in table}) == 2
    (refused,) = rows(here / "lake" / "refused")
    assert (refused["key"], refused["value"]) == (b"odd", b"no order")
    seen = status(load(file))
    assert not mistakes_of("pipeline status", status_json(seen))
    assert not mistakes_of("pipeline run", {"name": seen.name, **seen.sums.as_json()})
    assert [(row.lag, row.topic) for row in seen.partitions] == [(0, "orders")] * 2 and seen.trouble is None
    ends = {(row.topic, row.partition): row.position for row in seen.partitions}
    with Client(brokers) as client:
        assert {where: done.offset for where, done in client.committed("lake", ends).items()} == ends
        # a run was killed behind its last batch: the next one, with nothing to do, tells the group all the same
        client.commit("lake", dict.fromkeys(ends, CommittedOffset(0, -1, "")))
        assert run(file, spark).batches == 0
        assert {where: done.offset for where, done in client.committed("lake", ends).items()} == ends


def test_files_become_records_of_a_topic(here: Path, spark: SparkSession, brokers: str) -> None:
    (here / "incoming").mkdir()
    (here / "incoming" / "a.csv").write_text("id,item,price\n1,tea,2.5\n2,milk,1.0\n")
    file = here / "files_to_topic.toml"
    file.write_text(file.read_text().replace('topic = "orders"', 'topic = "imported"'))
    assert run(file, spark).rows_out == 2
    found = sorted((message.key(), json.loads(message.value() or b"")) for message in read(brokers, "imported", 2))
    assert found == [
        (b"milk", {"id": 2, "item": "milk", "price": 1.0}),
        (b"tea", {"id": 1, "item": "tea", "price": 2.5}),
    ]


def test_dead_letters_carry_their_reason(here: Path, spark: SparkSession, brokers: str) -> None:
    assert run(here / "dead_letters.toml", spark).rejected == 1
    (letter,) = read(brokers, "orders-refused", 1)
    assert (letter.key(), letter.value()) == (b"odd", b"no order")
    headers = dict(letter.headers())
    assert headers["reason"] == b"the value is not one JSON object of the given schema"
    assert headers["topic"] and headers["partition"].isdigit() and headers["offset"].isdigit()
    assert len(rows(here / "lake" / "good-orders")) == 20


def test_windowed_counts_are_written_once_the_watermark_has_passed(here: Path, spark: SparkSession) -> None:
    file = here / "windowed_counts.toml"
    file.write_text(file.read_text() + '\n[dead_letters]\ntable = "lake/refused"\n')
    run(file, spark)
    counted = rows(here / "lake" / "orders-per-minute")
    # the last window of the second day waits for a later record
    assert sum(row["orders"] for row in counted) == 15
    assert {row["item"] for row in counted} == {"item0", "item1"}
    assert len(rows(here / "lake" / "refused")) == 1


def test_two_topics_are_joined_in_time(here: Path, spark: SparkSession) -> None:
    module(here / "stream_join.py").join(spark, "orders", "payments", str(here / "joined"), str(here / "cp"))
    joined = spark.read.parquet(str(here / "joined")).collect()
    assert sorted(row.id for row in joined) == list(range(0, 20, 2))
    assert {row.amount for row in joined} == {1.5}


def test_a_batch_enters_sqlite_once(here: Path, spark: SparkSession) -> None:
    example = module(here / "into_sqlite.py")
    database = str(here / "orders.db")
    example.copy(spark, "orders", database, str(here / "cp"))
    # Spark forgets that the batch was done, as after a crash before its commit
    (here / "cp" / "commits" / "0").unlink()
    (here / "cp" / "commits" / ".0.crc").unlink(missing_ok=True)
    example.copy(spark, "orders", database, str(here / "cp"))
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT key) FROM records").fetchone() == (21, 21)


def test_every_example_is_listed_and_tested() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    tested = Path(__file__).read_text()
    names = [file.name for file in EXAMPLES.iterdir() if file.suffix in (".py", ".toml")]
    assert len(names) >= 6 and all(f"`{name}`" in listed and name in tested for name in names)


def read(brokers: str, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "examples", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
        found: list[Any] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), timeout=60)
            assert messages, f"{len(found)} of {count} records of {topic} could be read"
            found += messages
        return found
    finally:
        consumer.close()
