"""Values as columns: whatever bytes come, a row is read or rejected, and never ends the run."""

from __future__ import annotations

from pyspark.sql import SparkSession

from heirlog.spark.pipeline.spec import Values
from heirlog.spark.pipeline.values import REASON, parse

SCHEMA = "i INT, s SMALLINT, d DECIMAL(5,2), t STRING"


def test_numbers_that_do_not_fit_and_bytes_that_only_look_framed_are_rejected(spark: SparkSession) -> None:
    good = [b'{"i":1,"s":2,"d":1.25}', b'\x00\x00\x00\x00\x07{"i":1,"s":2,"d":1.25}\n']
    bad = [
        b'{"i":3000000000}',
        b'{"s":70000}',
        b'{"i":"\xc3\xa9"}',
        b'{"t":"\xff"}',
        b"\x00\xff\xff\xff\xff no schema has this id",
        b"\x00",
        b"",
        b"null",
        b'[{"i":1}]',
        *(b'{"i":1}' + rest for rest in (b" x", b'{"i":2}', b"}", b"]", b',{"i":2}', b',"i":2', b'}],"x":[{', b"\n1")),
    ]
    rows = spark.createDataFrame([(bytearray(value),) for value in [*good, *bad]], "value binary")
    parsed = parse(rows, Values("json", SCHEMA, True))
    assert [(row.schema_id, row.value.i) for row in parsed.good.collect()] == [(None, 1), (7, 1)]
    assert sorted(bytes(row.value) for row in parsed.bad.collect()) == sorted(bad)
    assert parsed.rows.where(f"{REASON} = 'the value is not one JSON object of the given schema'").count() == len(bad)
