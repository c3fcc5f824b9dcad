"""The functions that users call. Each gives a column; the work is done in Spark's Python workers, on Arrow arrays.

    mode FAILFAST      a value that cannot be read fails the query, with a sentence that says why (the default)
    mode PERMISSIVE    it becomes null

A null stays null. A registry without an answer fails the query in both modes: its values are not bad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType

from heirlog.spark.schemas.framing import FRAMINGS, BadValue, message_path, unframed
from heirlog.spark.schemas.registry import Registry, Schema, UnknownSchema, client_of

if TYPE_CHECKING:
    from heirlog.spark.schemas.protobuf import MessageType

MODES = ("FAILFAST", "PERMISSIVE")
Read = Callable[[bytes, Any], Any]
"""A value and its headers to what Arrow takes. Raises BadValue."""


def from_avro(
    value: Column | str,
    registry: Registry | str | None = None,
    schema: str | Schema | None = None,
    *,
    subject: str | None = None,
    framing: str = "confluent",
    headers: Column | str | None = None,
    mode: str = "FAILFAST",
) -> Column:
    """Avro values as columns of the reader's schema: `schema`, or else the newest one of `subject` at this moment.

    `framing` is where the id of the writer's schema is (`framing.py`); `headers` is the column for `headers`. With
    `none` no registry is asked, and `schema` is the writer's too. Raises ValueError, UnknownSchema, RegistryError.
    """
    from heirlog.spark.schemas import avro

    _check(framing, headers, mode)
    place = Registry(registry) if isinstance(registry, str) else registry
    if (place is None) != (framing == "none") or (schema is None) == (subject is None):
        raise ValueError(
            "from_avro needs a registry (unless framing is none), and either schema, the reader's schema as JSON, or "
            "subject, whose newest schema is then taken"
        )
    if subject is not None:
        if place is None:
            raise ValueError("subject needs a registry")
        wanted = client_of(place).latest(subject)
    else:
        wanted = schema if isinstance(schema, Schema) else Schema(schema or "")
    reader = avro.parsed(wanted)
    raw_type = avro.arrow_type(reader)
    reads: dict[int | None, Callable[[bytes], Any]] = {}

    def read(framed: bytes, names: Any) -> Any:
        schema_id, payload = unframed(framed, framing, names)
        if schema_id not in reads:
            if len(reads) > _READERS_MAX:
                reads.clear()
            reads[schema_id] = avro.reader_of(_written(place, schema_id, reader), reader)
        try:
            return reads[schema_id](payload)
        except BadValue as error:
            raise BadValue(f"{error} (schema id {schema_id})") from error

    return _applied(read, raw_type, from_arrow_type(raw_type), value, headers, mode)


_READERS_MAX = 1000


def _written(place: Registry | None, schema_id: int | None, reader: Any) -> Any:
    from heirlog.spark.schemas import avro

    if place is None or schema_id is None:
        return reader
    try:
        return avro.parsed(client_of(place).schema(schema_id))
    except (UnknownSchema, avro.SchemaNotSupported) as error:
        raise BadValue(str(error)) from error


def from_protobuf(
    value: Column | str,
    message: str,
    descriptors: str | bytes,
    *,
    framing: str = "confluent",
    headers: Column | str | None = None,
    mode: str = "FAILFAST",
) -> Column:
    """Protobuf values as columns of a message type, `package.Name`.

    `descriptors` is the file, or its content, that `protoc --include_imports --descriptor_set_out=FILE` writes. No
    registry is asked: fields are found by their numbers, whichever version of the type wrote them. Raises ValueError.
    """
    from heirlog.spark.schemas import protobuf

    _check(framing, headers, mode)
    content = descriptors if isinstance(descriptors, bytes) else _content(descriptors)
    raw_type = protobuf.arrow_type(protobuf.message_of(content, message).descriptor)
    has_path = framing in ("confluent", "apicurio")
    cached: list[MessageType] = []

    def read(framed: bytes, names: Any) -> Any:
        if not cached:
            cached.append(protobuf.message_of(content, message))
        payload = unframed(framed, framing, names).payload
        if has_path:
            path, payload = message_path(payload)
            cached[0].check(path)
        return cached[0].read(payload)

    return _applied(read, raw_type, from_arrow_type(raw_type), value, headers, mode)


def _content(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def from_json(value: Column | str, schema: str | DataType, *, framing: str = "confluent", **options: str) -> Column:
    """JSON values written by a serializer with a schema registry: Spark's `from_json`, with the framing removed.

    No registry is asked, and no Python runs. A value without the framing is read as it is: JSON does not begin with a
    zero byte.
    """
    _check(framing, "headers" if framing == "headers" else None, "FAILFAST")
    raw = f.col(value) if isinstance(value, str) else value
    size = {"confluent": 5, "apicurio": 9}.get(framing, 0)
    framed = (f.length(raw) >= size) & (f.substring(raw, 1, 1) == f.lit(b"\x00"))
    payload = f.when(framed, f.substring(raw, size + 1, 2**31 - 1)).otherwise(raw) if size else raw
    return f.from_json(payload.cast("string"), schema, options)  # type: ignore[arg-type]  # it takes any DataType


def _check(framing: str, headers: Column | str | None, mode: str) -> None:
    if framing not in FRAMINGS:
        raise ValueError(f"framing is {framing!r}; it can be {', '.join(FRAMINGS)}")
    if (framing == "headers") != (headers is not None):
        raise ValueError("framing=headers and the argument headers, the column of headers, belong together")
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}; it can be {', '.join(MODES)}")


def _applied(
    read: Read, raw_type: pa.DataType, kind: DataType, value: Column | str, headers: Column | str | None, mode: str
) -> Column:
    final = to_arrow_type(kind, timezone="UTC")

    def decoded(values: pa.Array, *headers_of: pa.Array) -> pa.Array:
        return decode(read, raw_type, final, values, headers_of[0] if headers_of else None, mode)

    columns = (value,) if headers is None else (value, headers)
    # PySpark's types of it know no struct
    return arrow_udf(decoded, kind)(*columns)  # type: ignore[call-overload, no-any-return]


def decode(
    read: Read, raw_type: pa.DataType, final: pa.DataType, values: pa.Array, headers: pa.Array | None, mode: str
) -> pa.Array:
    """One batch of a worker. Raises BadValue with mode FAILFAST, RegistryError."""
    names = headers.to_pylist() if headers is not None else [None] * len(values)
    rows = []
    for value, of_value in zip(values.to_pylist(), names, strict=True):
        try:
            rows.append(None if value is None else read(value, of_value))
        except BadValue as error:
            if mode != "PERMISSIVE":
                raise _advised(error) from error
            rows.append(None)
    try:
        return _column(rows, raw_type, final)
    except BadValue as error:
        if mode != "PERMISSIVE":
            raise _advised(error) from error
    # one of them does not fit, and only one by one shows which
    return pa.chunked_array([_or_null(row, raw_type, final) for row in rows], final).combine_chunks()


def _column(rows: list[Any], raw_type: pa.DataType, final: pa.DataType) -> pa.Array:
    try:
        return pa.array(rows, raw_type).cast(final)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise BadValue(f"it does not fit into its column: {error}") from error


def _or_null(row: Any, raw_type: pa.DataType, final: pa.DataType) -> pa.Array:
    try:
        return _column([row], raw_type, final)
    except BadValue:
        return pa.nulls(1, final)


def _advised(error: BadValue) -> BadValue:
    return BadValue(f"a value cannot be read: {error}. With mode=PERMISSIVE such values become null")
