"""Avro: the type of a schema in Arrow, and values of any writer's schema as rows of one reader's schema.

A value can only be read with the schema that wrote it; the reader's schema says what the rows have. What was added
since gets its default, what was removed is ignored, and numbers become wider (Avro's schema resolution).

Types are those of Spark's own `from_avro`: an enum is a string, `timestamp-millis` and `-micros` are timestamps,
`local-timestamp-*` timestamps without time zone, other logical types than `date` and `decimal` are ignored. Everything
may be null. A union is its one member besides null; {int, long} and {float, double} are the larger of the two.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.types import Schema as Parsed

from heirlog.spark.schemas.framing import BadValue
from heirlog.spark.schemas.registry import Schema

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "null": pa.null(),
}
# fastavro would make Python objects of these; Arrow takes the numbers as they are
_NUMBERS = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_WIDER = (({"int", "long"}, "long"), ({"float", "double"}, "double"))
PRECISION_MAX = 38
_LOGICAL = "heirlog.logicalType"
"""Where a logical type is kept out of fastavro's sight."""


class SchemaNotSupported(ValueError):
    """A schema that is not Avro, or has no Spark type."""


def parsed(schema: Schema) -> Parsed:
    """Raises SchemaNotSupported."""
    named: dict[str, Any] = {}
    try:
        for text in schema.references:
            fastavro.parse_schema(_hidden(_loaded(text)), named_schemas=named)
        return fastavro.parse_schema(_hidden(_loaded(schema.text)), named_schemas=named)
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError, TypeError) as error:
        raise SchemaNotSupported(f"the schema is not Avro: {error}") from error


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaNotSupported(f"the schema is not in Avro's JSON form: {error}") from error


def _hidden(schema: Any) -> Any:
    """All logical types except decimal under another name."""
    if isinstance(schema, list):
        return [_hidden(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: _hidden(one) if name in ("type", "items", "values") else one for name, one in schema.items()}
    if isinstance(schema.get("fields"), list):
        changed["fields"] = [_hidden(one) for one in schema["fields"]]
    if changed.get("logicalType", "decimal") != "decimal":
        changed[_LOGICAL] = changed.pop("logicalType")
    return changed


def arrow_type(schema: Any, within: tuple[str, ...] = (), named: dict[str, Any] | None = None) -> pa.DataType:
    """Of a parsed schema. Raises SchemaNotSupported."""
    named = {} if named is None else named
    if isinstance(schema, list):
        return arrow_type(_member(schema), within, named)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _PRIMITIVES[schema]
        if schema in within:
            raise SchemaNotSupported(f"{schema} contains itself, which Spark's types cannot")
        return arrow_type(named[schema], within, named)
    kind = schema["type"]
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        precision = schema["precision"]
        if not 0 < precision <= PRECISION_MAX:
            raise SchemaNotSupported(f"a decimal of {precision} digits; Spark's have at most {PRECISION_MAX}")
        return pa.decimal128(precision, schema.get("scale", 0))
    if kind == "record":
        named.update(schema.get("__named_schemas", {}), **{schema["name"]: schema})
        inside = (*within, schema["name"])
        fields = [(one["name"], arrow_type(one["type"], inside, named)) for one in schema["fields"]]
        return pa.struct(fields)
    if kind in ("enum", "fixed"):
        named[schema["name"]] = schema
        return pa.string() if kind == "enum" else pa.binary()
    if kind == "array":
        return pa.list_(arrow_type(schema["items"], within, named))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"], within, named))
    return _NUMBERS.get((kind, schema.get(_LOGICAL))) or arrow_type(kind, within, named)


def _member(union: Sequence[Any]) -> Any:
    members = [one for one in union if one != "null"]
    if len(members) == 1:
        return members[0]
    if not members:
        return "null"
    names = {one for one in members if isinstance(one, str)}
    for together, wider in _WIDER:
        if len(names) == len(members) and names == together:
            return wider
    raise SchemaNotSupported(
        f"a union of {len(members)} types besides null has no column type. Give a reader's schema that has one of them"
    )


def reader_of(writer: Parsed, reader: Parsed) -> Callable[[bytes], Any]:
    """The function that reads one value. It raises BadValue."""

    def read(payload: bytes) -> Any:
        stream = io.BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(stream, writer, reader)
        except Exception as error:
            # fastavro's errors of damaged bytes are of many classes: EOFError, IndexError, UnicodeDecodeError, ...
            said = str(error) or type(error).__name__
            raise BadValue(f"it cannot be read with its schema: {said}") from error
        if stream.tell() != len(payload):
            raise BadValue(f"{len(payload) - stream.tell()} bytes follow it: another schema has written it")
        return value

    return read
