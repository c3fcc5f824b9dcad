from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heirlog.spark.schemas import avro
from heirlog.spark.schemas.avro import SchemaNotSupported
from heirlog.spark.schemas.framing import BadValue
from heirlog.spark.schemas.registry import Schema


def parsed(schema: Any, *references: Any) -> Any:
    return avro.parsed(Schema(json.dumps(schema), tuple(map(json.dumps, references))))


def record(*fields: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{at}", **one} for at, one in enumerate(fields)]}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("long", pa.int64()),
        ("boolean", pa.bool_()),
        (["null", "string"], pa.string()),
        (["int", "long", "null"], pa.int64()),
        (["double", "float"], pa.float64()),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 3}, pa.binary()),
        ({"type": "array", "items": "int"}, pa.list_(pa.int32())),
        ({"type": "map", "values": ["null", "float"]}, pa.map_(pa.string(), pa.float32())),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", tz="UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "time-micros"}, pa.int64()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, pa.decimal128(5, 2)),
    ],
)
def test_a_type_of_avro_has_its_type_of_arrow(schema: Any, kind: pa.DataType) -> None:
    assert avro.arrow_type(parsed(schema)) == kind
    assert avro.arrow_type(parsed(record({"type": schema}))) == pa.struct([("f0", kind)])


def test_a_type_that_is_named_is_found_again_also_in_a_reference() -> None:
    unit = {"type": "enum", "name": "unit", "namespace": "shop", "symbols": ["KG"]}
    order = {**record({"type": "shop.unit"}, {"type": ["null", "shop.unit"]}), "namespace": "shop"}
    assert avro.arrow_type(parsed(order, unit)) == pa.struct([("f0", pa.string()), ("f1", pa.string())])


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (record({"type": ["null", "r"]}), "r contains itself"),
        (["int", "string"], "a union of 2 types"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "39 digits"),
        ("unknown", "not Avro"),
        ({"type": "record", "fields": []}, "not Avro"),
    ],
)
def test_a_schema_without_a_column_type_is_refused(schema: Any, why: str) -> None:
    with pytest.raises(SchemaNotSupported, match=why):
        avro.arrow_type(parsed(schema))
    with pytest.raises(SchemaNotSupported, match="not in Avro's JSON form"):
        avro.parsed(Schema("{"))


def test_the_reader_s_schema_says_what_a_row_has() -> None:
    old = record({"type": "int"}, {"type": "string"})
    new = record({"type": "long"}, {"name": "added", "type": "string", "default": "none"})
    read = avro.reader_of(parsed(old), parsed(new))
    assert read(written(old, {"f0": 5, "f1": "gone"})) == {"f0": 5, "added": "none"}


def test_a_writer_s_schema_that_the_reader_cannot_have_makes_bad_values() -> None:
    old = record({"type": "string"})
    read = avro.reader_of(parsed(old), parsed(record({"type": "long"})))
    with pytest.raises(BadValue, match="cannot be read with its schema"):
        read(written(old, {"f0": "x"}))


LARGE = record(
    {"type": "long"}, {"type": {"type": "array", "items": "string"}}, {"type": {"type": "map", "values": "bytes"}}
)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_bad(data: bytes) -> None:
    read = avro.reader_of(parsed(LARGE), parsed(LARGE))
    try:
        value = read(data)
    except BadValue:
        return
    assert set(value) == {"f0", "f1", "f2"}


@pytest.mark.parametrize("change", [lambda value: value[:-1], lambda value: value + b"x"])
def test_a_value_that_is_cut_or_too_long_is_bad(change: Any) -> None:
    schema = record({"type": "long"}, {"type": "string"})
    read = avro.reader_of(parsed(schema), parsed(schema))
    with pytest.raises(BadValue):
        read(change(written(schema, {"f0": 1, "f1": "text"})))
