"""The functions in Spark: schemas that change half-way in a topic, bad values, and a registry that is away."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F  # type: ignore[import-untyped]  # it has no types
from pyspark.sql import DataFrame, SparkSession
from spark.schemas.answers import Answers, registry_answers
from spark.schemas.test_protobuf import descriptors, message
from spark.topics import Topics

from heirlog.spark.schemas import BadValue, Registry, from_avro, from_json, from_protobuf
from heirlog.testing.cluster import Cluster

OLD = {
    "type": "record",
    "name": "order",
    "fields": [{"name": "id", "type": "int"}, {"name": "gone", "type": "string", "default": ""}],
}
NEW = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "item", "type": "string", "default": "none"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "int"}, "default": {}},
    ],
}
TIME = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with registry_answers() as started:
        started.of["/schemas/ids/1"] = {"schema": json.dumps(OLD)}
        started.of["/schemas/ids/2"] = {"schema": json.dumps(NEW)}
        started.of["/schemas/ids/3"] = {"schema": '"string"'}
        started.of["/subjects/orders-value/versions/latest"] = {"schema": json.dumps(NEW)}
        yield started


def avro(schema_id: int, schema: Any, value: Any, id_bytes: int = 4) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(id_bytes, "big"))
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def of(spark: SparkSession, *values: bytes | None) -> DataFrame:
    return spark.createDataFrame([(None if value is None else bytearray(value),) for value in values], "value binary")


def test_a_topic_whose_schema_changes_half_way_has_rows_of_one_schema(
    spark: SparkSession, cluster: Cluster, answers: Answers
) -> None:
    topics = Topics(cluster)
    topic = topics.create()
    old = [avro(1, OLD, {"id": number, "gone": "x"}) for number in range(3)]
    new = [avro(2, NEW, {"id": number, "item": "b", "at": TIME, "tags": {"t": 1}}) for number in range(3, 5)]
    topics.produce(topic, ({"value": value} for value in [*old, *new, None]))
    rows = spark.read.format("heirlog").option("kafka.bootstrap.servers", topics.servers).option("subscribe", topic)
    orders = (
        rows.load().orderBy("offset").select(from_avro("value", answers.url, subject="orders-value").alias("order"))
    )
    found = [row.order.asDict() if row.order else None for row in orders.collect()]
    defaults = {"item": "none", "at": None, "tags": {}}
    local = TIME.astimezone().replace(tzinfo=None)
    assert found == [
        *({"id": number, **defaults} for number in range(3)),
        *({"id": number, "item": "b", "at": local, "tags": {"t": 1}} for number in (3, 4)),
        None,
    ]


def test_a_bad_value_fails_the_query_or_is_null(spark: SparkSession, answers: Answers) -> None:
    good = avro(1, OLD, {"id": 1, "gone": ""})
    too_late = avro(2, NEW, {"id": 1, "item": "", "at": 2**62, "tags": {}})
    bad = {
        b"no": "does not begin with a zero byte",
        good[:-1]: r"cannot be read with its schema.*\(schema id 1\)",
        good + b"x": "1 bytes follow it",
        b"\0\0\0\0\x09x": "has no schema with the id 9",
        b"\0\0\0\0\x03\x00": r"cannot be read with its schema.*\(schema id 3\)",
        too_late: "does not fit into its column",
    }
    read = from_avro("value", answers.url, json.dumps(NEW), mode="PERMISSIVE").alias("order")
    found = of(spark, *bad, good).select(read).collect()
    assert [row.order is None for row in found] == [True] * len(bad) + [False]
    strict = from_avro("value", answers.url, json.dumps(NEW))
    with pytest.raises(Exception, match=r"a value cannot be read: .*With mode=PERMISSIVE such values become null"):
        of(spark, next(iter(bad))).select(strict).collect()


def test_a_registry_without_an_answer_fails_the_query_in_both_modes(spark: SparkSession) -> None:
    read = from_avro("value", "http://127.0.0.1:1", json.dumps(NEW), mode="PERMISSIVE")
    with pytest.raises(Exception, match=r"the schema registry http://127\.0\.0\.1:1 cannot be reached"):
        of(spark, avro(1, OLD, {"id": 1, "gone": ""})).select(read).collect()


def test_ids_of_eight_bytes_and_ids_in_headers_are_found(spark: SparkSession, answers: Answers) -> None:
    value = avro(1, OLD, {"id": 4, "gone": ""}, id_bytes=8)
    rows = of(spark, value).selectExpr(
        "value",
        "substring(value, 10) bare",
        "array(named_struct('key', 'apicurio.value.contentId', 'value', substring(value, 2, 8))) headers",
    )
    eight = from_avro("value", answers.url, json.dumps(NEW), framing="apicurio").alias("eight")
    headers = from_avro("bare", answers.url, json.dumps(NEW), framing="headers", headers="headers").alias("headers")
    none = from_avro("bare", schema=json.dumps(OLD), framing="none").alias("none")
    (row,) = rows.select(eight, headers, none).collect()
    assert (row.eight.id, row.headers.id, row.none.id) == (4, 4, 4)


def test_messages_of_protobuf_are_rows(spark: SparkSession) -> None:
    old, new = descriptors(), descriptors(("added", 9, F.TYPE_STRING))
    framed = b"\0\0\0\0\1\2\2"
    rows = of(spark, framed + message(new, id=5, tags={"a": 1}, added="x"), framed + message(old, id=6), b"\0", None)
    read = from_protobuf("value", "shop.Order", new, mode="PERMISSIVE").alias("order")
    found = [row.order and (row.order.id, row.order.added, row.order.tags) for row in rows.select(read).collect()]
    assert found == [(5, "x", {"a": 1}), (6, "", {}), None, None]


def test_json_is_read_with_and_without_the_framing(spark: SparkSession) -> None:
    rows = of(spark, b'\0\0\0\0\1{"id": 1}', b'{"id": 2}', None)
    found = rows.select(from_json("value", "id BIGINT").alias("order")).collect()
    assert [row.order and row.order.id for row in found] == [1, 2, None]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"schema": "{}"}, "needs a registry"),
        ({"registry": "http://h:1"}, "either schema"),
        ({"registry": "http://h:1", "schema": '"int"', "subject": "s"}, "either schema"),
        ({"subject": "s", "framing": "none"}, "subject needs a registry"),
        ({"registry": "http://h:1", "schema": '"int"', "framing": "x"}, "framing is 'x'"),
        ({"registry": "http://h:1", "schema": '"int"', "framing": "headers"}, "belong together"),
        ({"registry": "http://h:1", "schema": '"int"', "mode": "DROPMALFORMED"}, "mode is 'DROPMALFORMED'"),
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(
    spark: SparkSession, arguments: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        from_avro("value", **arguments)  # type: ignore[arg-type]


def test_a_login_of_the_registry_is_in_no_plan_and_in_no_error(
    spark: SparkSession, answers: Answers, capfd: Any
) -> None:
    place = Registry(answers.url, "user", "hunter2")
    rows = of(spark, b"bad").select(from_avro("value", place, json.dumps(NEW)))
    rows.explain(True)
    with pytest.raises(Exception, match=BadValue.__name__) as failed:
        rows.collect()
    assert "hunter2" not in str(failed.value) + capfd.readouterr().out
