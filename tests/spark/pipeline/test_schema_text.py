"""A mistake in a schema is named as the user wrote it, not with what heirlog writes around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from heirlog.spark.pipeline.load import parse as load
from heirlog.spark.pipeline.run import read
from heirlog.spark.pipeline.spec import PipelineError, Values
from heirlog.spark.pipeline.values import parse

MISTAKES = [
    ("id BIGINT, price DUBLE", "Spark has no type DUBLE; did you mean DOUBLE?"),
    ("id BIGINT,\nxs ARRAY<STRNG>,", "line 2: Spark has no type STRNG; did you mean STRING?"),
    ("id BIGINT, price €", "'€'"),
    ("id BIGINT price DOUBLE", "'price'"),
]


@pytest.mark.parametrize(("schema", "sentence"), MISTAKES)
def test_a_schema_of_values_or_files_is_refused_with_its_mistake(
    schema: str, sentence: str, spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([], "value binary")
    with pytest.raises(PipelineError) as of_values:
        parse(rows, Values("json", schema))
    assert str(of_values.value).startswith("the schema of [value] does not fit: ")
    text = f"name = 'c'\ncheckpoint = 'c'\n[source]\nfiles = 'in'\nformat = 'csv'\nschema = '''{schema}'''\n"
    (tmp_path / "in").mkdir()
    with pytest.raises(PipelineError) as of_files:
        read(spark, load(f"{text}[sink]\ntable = 'out'\n", tmp_path / "c.toml"))
    assert str(of_files.value).startswith("the schema of [source] does not fit: ")
    for refused in (of_values, of_files):
        shown = str(refused.value)
        assert sentence in shown and "STRUCT" not in shown and "SQLSTATE" not in shown and "\n" not in shown, shown
