"""The values of records as columns, and the rows whose value cannot be read.

    raw     value stays bytes
    text    value becomes a string; bytes that are not UTF-8 are rejected
    json    value becomes a struct of the given schema
    avro    the same, by the schema in Avro's JSON form (needs the package spark-avro on the cluster)
            with a registry by the schema that wrote the value, as columns of the reader's (needs heirlog[schemas])

Topics with different values have kinds: `value` is then a struct with a member for each kind, of which all but one are
null. A record of a topic that no kind names is rejected.

A value that is null (a tombstone) is no mistake: it stays null. Schema-registry framing is a zero byte and the
schema's id in four bytes before the value; the id becomes the column `schema_id`, and the value is read without it. No
JSON text begins with a zero byte, so there the framing is recognised row by row; Avro may, so there the file says it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from heirlog.spark.pipeline.schema_text import mistake
from heirlog.spark.pipeline.spec import Files, PipelineError, Values
from heirlog.spark.schemas.functions import from_avro as from_registered_avro
from heirlog.spark.schemas.registry import Schema

REASON = "_heirlog_reason"
RAW = "_heirlog_raw"
CORRUPT_COLUMN = "_heirlog_corrupt"
"""Where Spark's readers put the text of a row that they could not read."""
MEMBER = "_heirlog_value"
FILE = "_heirlog_file"
"""Which file a row of a file source came from, for its dead letter."""
READ = "_heirlog_read"
"""What of a row could be read, as JSON. Spark refuses to read a file for its unreadable rows alone, too."""
PLACE = ("topic", "partition", "offset")
ADVICE = "correct the format or schema in the pipeline file, or add [dead_letters] with a table or topic for such rows"
NO_SCHEMAS: Mapping[str, Schema] = MappingProxyType({})
_ORIGINAL = "_heirlog_original"
_SCHEMA_ID = "schema_id"
_FRAME_BYTES = 5
_END = "_heirlog_end"
_MARK = bytes.fromhex("a7 1c e5 93 f0 4b 68 d2")


@dataclass(frozen=True)
class Parsed:
    """Rows with a reason column: null where the row was read, else a sentence on why not."""

    rows: DataFrame
    may_reject: bool

    @property
    def good(self) -> DataFrame:
        if not self.may_reject:
            return self.rows
        return self.rows.where(f.col(REASON).isNull()).drop(REASON, RAW, FILE, READ)

    @property
    def strict(self) -> DataFrame:
        """The good rows; the query fails at the first one that is not."""
        if not self.may_reject:
            return self.rows
        said = f.concat(f.lit("PipelineError: a row does not parse ("), self._place, f.lit("): "), f.col(REASON))
        fails = f.raise_error(f.concat(said, f.lit(f"; {ADVICE}"))).cast("boolean")
        return self.rows.where(f.when(f.col(REASON).isNull(), True).otherwise(fails)).drop(REASON, RAW, FILE, READ)

    @property
    def _place(self) -> Column:
        """Where a row came from, as far as its columns say."""
        known = [name for name in (*PLACE, FILE) if name in self.rows.columns]
        said = [f.concat(f.lit(f"{_ORIGIN[name]} "), f.col(name).cast("string")) for name in known]
        return f.concat_ws(", ", *said) if said else f.lit("its columns do not say which")

    @property
    def bad(self) -> DataFrame:
        """What came, unread, and `reason`."""
        names = [name for name in self.rows.columns if name in _ORIGIN]
        kept = [f.col(name).alias(_ORIGIN[name]) for name in names]
        rejected = self.rows.where(f.col(REASON).isNotNull())
        return rejected.select(*kept, f.col(RAW).alias("value"), f.col(REASON).alias("reason"))


_ORIGIN = {name: name for name in ("key", "topic", "partition", "offset", "timestamp", "headers")} | {
    FILE: "file",
    READ: "read",
}
"""Columns of a rejected row that its dead letter keeps, and their names there."""


def parse(rows: DataFrame, values: Values, newest: Mapping[str, Schema] = NO_SCHEMAS) -> Parsed:
    """The rows of a topic source with `value` read as `values` says. Raises PipelineError where the schema is wrong.

    newest: the schemas of `values.subjects`.
    """
    if values.kinds:
        return _parse_kinds(rows, values.kinds, newest)
    if values.format == "raw" and not values.registry_framing:
        return Parsed(rows, False)
    rows = rows.withColumn(RAW, f.col("value"))
    raw = payload = f.col(RAW)
    if values.registry_framing or values.registry is not None:
        framed = (f.length(raw) >= _FRAME_BYTES) & (f.substring(raw, 1, 1) == f.lit(b"\x00"))
        rows = rows.withColumn(
            _SCHEMA_ID, f.when(framed, f.conv(f.hex(f.substring(raw, 2, 4)), 16, 10).try_cast("int"))
        )
        payload = f.when(framed, f.substring(raw, _FRAME_BYTES + 1, 2**31 - 1)).otherwise(raw)
    if values.format == "raw":
        return Parsed(rows.withColumn("value", payload).drop(RAW), False)
    try:
        if values.registry is not None:
            read, reason = _registered(raw, values, newest.get(""))
        else:
            read, reason = _READERS[values.format](payload, values.schema or "")
        # the reason uses the parsed value, so that is added first, next to the bytes
        read_rows = rows.withColumn("value", read)
        rows = read_rows.withColumn(REASON, f.when(f.col(RAW).isNotNull(), reason))
        if values.format in ("json", "avro") and values.registry is None:
            rows = rows.withColumn("value", f.col("value").getField(MEMBER))
    except AnalysisException as error:
        if values.format == "avro" and "spark-avro" in str(error).lower().replace("_", "-"):
            raise PipelineError(
                "values of avro need the package spark-avro: start with "
                "--conf spark.jars.packages=org.apache.spark:spark-avro_2.13:<Spark's version>"
            ) from error
        why = mistake(values.schema, error) if values.format == "json" and values.schema else str(error)
        raise PipelineError(f"the schema of [value] does not fit: {why}") from error
    return Parsed(rows, True)


def _parse_kinds(rows: DataFrame, kinds: Mapping[str, Values], newest: Mapping[str, Schema]) -> Parsed:
    columns = [*rows.columns]
    rows = rows.withColumn(_ORIGINAL, f.col("value"))
    original, topic = f.col(_ORIGINAL), f.col("topic")
    named = f.lit(False)
    for name, kind in kinds.items():
        here = topic.isin(*kind.topics)
        named = named | here
        schemas = {"": newest[name]} if name in newest else NO_SCHEMAS
        rows = parse(rows.withColumn("value", f.when(here, original)), replace(kind, topics=()), schemas).rows
        for column in ("value", REASON, _SCHEMA_ID):
            if column in rows.columns:
                rows = rows.withColumn(f"{column} {name}", f.col(column))
        rows = rows.drop(RAW, REASON, _SCHEMA_ID)
    foreign = f.when(original.isNotNull() & ~named, f.lit("no [value.NAME] has this topic in its `topics`"))
    rows = rows.withColumn("value", f.struct(*(f.col(f"`value {name}`").alias(name) for name in kinds)))
    for column, others in ((REASON, [foreign]), (_SCHEMA_ID, [])):
        found = [f.col(f"`{column} {name}`") for name in kinds if f"{column} {name}" in rows.columns]
        if found or others:
            rows = rows.withColumn(column, f.coalesce(*found, *others))
            columns.append(column)
    return Parsed(rows.withColumn(RAW, original).select(*columns, RAW), True)


def _registered(framed: Column, values: Values, newest: Schema | None) -> tuple[Column, Column]:
    try:
        read = from_registered_avro(framed, values.registry, newest or values.schema, mode="PERMISSIVE")
    except ImportError as error:
        raise PipelineError(f"values of avro with a registry need heirlog[schemas]: {error}") from error
    except ValueError as error:
        raise PipelineError(f"the schema of [value] cannot be used: {error}") from error
    reason = f.lit("the value is not Avro of a schema in the registry, or that does not fit the reader's schema")
    return read, f.when(f.col("value").isNull(), reason)


def _text(payload: Column, _: str) -> tuple[Column, Column]:
    valid = f.call_function("is_valid_utf8", payload)
    return f.when(valid, payload.cast("string")), f.when(f.col("value").isNull(), f.lit("the value is not UTF-8"))


def _json(payload: Column, schema: str) -> tuple[Column, Column]:
    """Spark stops reading behind the first value, and of an array it takes the first element. What can stand both as a
    member of an object and as the only element of an array is one value: text behind it would have to begin with "}"
    for the one and with "]" for the other."""
    text = payload.cast("string")
    # the schema may end in a comment
    member = f"{MEMBER} STRUCT<{schema.rstrip().rstrip(',')}\n>, {CORRUPT_COLUMN} STRING"
    wrapped = f.concat(f.lit(f'{{"{MEMBER}":'), text, f.lit("}"))
    read = f.from_json(wrapped, member, {"columnNameOfCorruptRecord": CORRUPT_COLUMN})
    elements = f.from_json(f.concat(f.lit("["), text, f.lit("]")), "ARRAY<STRUCT<>>")
    value = f.col("value")
    bad = value.isNull() | value.getField(MEMBER).isNull() | value.getField(CORRUPT_COLUMN).isNotNull()
    bad = bad | (f.coalesce(f.size(elements), f.lit(0)) != 1)
    # Spark would put marks in the place of bytes that are no text
    bad = bad | ~f.call_function("is_valid_utf8", payload)
    return read, f.when(bad, f.lit("the value is not one JSON object of the given schema"))


def _avro(payload: Column, schema: str) -> tuple[Column, Column]:
    """Spark turns bytes that are not such a record into a row of nulls, and ignores bytes after the record.

    So the record is read with a mark after it, and the mark has to be found where the record ends."""
    mark = {"name": _END, "type": {"type": "fixed", "name": "heirlog_mark", "size": len(_MARK)}}
    try:
        fields = [{"name": MEMBER, "type": json.loads(schema)}, mark]
    except ValueError as error:
        raise PipelineError(f"the schema of [value] is not in Avro's JSON form: {error}") from error
    marked = json.dumps({"type": "record", "name": "heirlog_marked", "fields": fields})
    read = from_avro(f.concat(payload, f.lit(_MARK)), marked, {"mode": "PERMISSIVE"})
    found = f.coalesce(f.col("value").getField(_END) == f.lit(_MARK), f.lit(False))
    return read, f.when(~found, f.lit("the value is not Avro of the given schema"))


_READERS = {"text": _text, "json": _json, "avro": _avro}


def parse_files(rows: DataFrame, source: Files) -> Parsed:
    """The rows of a file source. Those of CSV and JSON that did not fit carry their text in CORRUPT_COLUMN. Lines of
    text that go into a table (then FILE is there) have to be UTF-8: some of its readers fail at what is not."""
    if FILE not in rows.columns:
        return Parsed(rows, False)
    if source.format == "text":
        bad = ~f.call_function("is_valid_utf8", f.col("value"))
        reason = f.when(bad, f.lit("the line is not UTF-8"))
        return Parsed(rows.withColumn(RAW, f.col("value")).withColumn(REASON, reason), True)
    columns = [name for name in rows.columns if name not in (CORRUPT_COLUMN, FILE)]
    read = f.to_json(f.struct(*columns))
    # never null; but a query that needs no column of the file, as one for the refused rows, is refused by Spark
    suffix = f.when(read.isNull(), f.lit(" at all")).otherwise(f.lit(""))
    reason = f.concat(f.lit(f"the row is not {source.format.upper()} of the schema"), suffix)
    rows = rows.withColumn(REASON, f.when(f.col(CORRUPT_COLUMN).isNotNull(), reason)).withColumn(READ, read)
    return Parsed(rows.withColumnRenamed(CORRUPT_COLUMN, RAW), True)
