"""What is wrong with a pipeline file, by line, before anything starts.

These are checked in order, and a check runs only if the one before found nothing: the file itself (load.py), the
options of source and sink, existing directories and tables, the brokers and their topics, and at the end the schema and
the SQL, which Spark analyses without reading a row.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, MapType, StructType

from heirlog.spark.options import read_options
from heirlog.spark.pipeline import brokers
from heirlog.spark.pipeline.batch import (
    LAKES,
    apply_sql,
    meaning,
    parsed_by,
    partition_columns,
    refuse_columns,
    tables_of,
)
from heirlog.spark.pipeline.brokers import topic_sinks
from heirlog.spark.pipeline.checkpoint import checkpoint_id, refuse_other_owner
from heirlog.spark.pipeline.load import load
from heirlog.spark.pipeline.run import read, sentence_of
from heirlog.spark.pipeline.spec import Files, Pipeline, PipelineError, Problem, Table, Topics
from heirlog.spark.sink_options import sink_options

_LACKING = ("[DATA_SOURCE_NOT_FOUND]", "[CATALOG_NOT_FOUND]")
_SQL_LINE = re.compile(r"\bline (\d+)")


def check(path: str | Path, spark: SparkSession | None = None, timeout_s: float = 5.0) -> list[Problem]:
    """All problems, in the order of the file's lines; empty if the pipeline may start.

    Without a session the schema and the SQL are not checked.
    """
    try:
        pipeline = load(path)
    except PipelineError as error:
        if not error.problems:
            raise
        return list(error.problems)
    found = [*_options(pipeline), *_places(pipeline)]
    if not found:
        found = brokers.problems(pipeline, timeout_s)
    if not found and spark is not None:
        found = _analysis(pipeline, spark, Path(path).read_text(encoding="utf-8-sig").splitlines())
    return sorted(found, key=lambda problem: problem.line)


def _options(pipeline: Pipeline) -> list[Problem]:
    found = []
    if isinstance(pipeline.source, Topics):
        try:
            read_options(pipeline.source.spark_options, streaming=True)
        except ValueError as error:
            found.append(Problem(pipeline.line_of("source", "options"), str(error)))
    for name, sink in topic_sinks(pipeline):
        try:
            sink_options(sink.batch_options(pipeline.name, "0"))
        except ValueError as error:
            found.append(Problem(pipeline.line_of(name, "options"), str(error)))
    return found


def _places(pipeline: Pipeline) -> list[Problem]:
    found = []
    source = pipeline.source
    if isinstance(source, Files) and "://" not in source.path and not Path(source.path).is_dir():
        sentence = f"the directory {source.path} does not exist: create it, or name another one in `files`"
        found.append(Problem(pipeline.line_of("source", "files"), sentence))
    for part in pipeline.parts:
        try:
            refuse_other_owner(part)
        except PipelineError as error:
            found.append(Problem(pipeline.line_of("checkpoint"), str(error)))
        for table in tables_of(part):
            name = (
                "sink" if isinstance(pipeline.sink, Table) and str(table.path) == pipeline.sink.path else "dead_letters"
            )
            try:
                table.refuse_other_owner(checkpoint_id(part.checkpoint), meaning(part))
            except PipelineError as error:
                found.append(Problem(pipeline.line_of(name, "table"), str(error)))
    tables = [("dead_letters", pipeline.dead_letters), ("sink", pipeline.sink)]
    places = [("checkpoint", pipeline.checkpoint)]
    places += [(name, sink.path) for name, sink in tables if isinstance(sink, Table) and sink.format == "parquet"]
    for name, place in places:
        if "://" not in place and not _can_be_made(Path(place)):
            found.append(Problem(pipeline.line_of(name), f"{place} cannot be written: choose another place"))
    return found


def _can_be_made(place: Path) -> bool:
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _ask_for_package(spark: SparkSession, table: Table) -> None:
    """Raises PipelineError where Spark has nothing that writes the table's format."""
    if table.format in LAKES:
        try:
            spark.read.format(table.format).load(table.path)
        except (PySparkException, Py4JJavaError) as error:
            # a table that is not there yet is made by the run
            if any(condition in str(error) for condition in _LACKING):
                raise PipelineError(
                    f"this Spark cannot write {table.path} as {table.format}: give the package and its "
                    "settings with --conf spark.jars=… and what its own documentation says"
                ) from error


def _refuse_what_no_stream_does(rows: DataFrame, output_mode: str) -> None:
    """Raises PySparkException for what Spark refuses when a stream starts. Over Spark Connect this finds nothing."""
    java, jvm = getattr(rows, "_jdf", None), getattr(rows.sparkSession, "_jvm", None)
    if java is not None and jvm is not None:
        mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
        checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
        checker.checkForStreaming(java.queryExecution().analyzed(), mode)


def _analysis(pipeline: Pipeline, spark: SparkSession, text: list[str]) -> list[Problem]:
    """Spark resolves the schema, the SQL and the partition columns; nothing is read."""
    place: tuple[str, ...] = ("source", "schema")
    try:
        rows = read(spark, pipeline)
        place = ("value", "schema")
        rows = parsed_by(pipeline, rows).good
        if pipeline.query is not None:
            if pipeline.query.over == "batch":
                # a batch allows more than a stream
                rows = spark.createDataFrame([], rows.schema)
            elif pipeline.query.watermark is not None:
                place = ("query", "watermark")
                rows = rows.withWatermark(*pipeline.query.watermark)
                rows.schema  # noqa: B018  # asking for it is the check
            place = ("query", "sql")
            rows = apply_sql(rows, pipeline.query)
            if pipeline.query.over == "stream":
                _refuse_what_no_stream_does(rows, pipeline.query.output_mode)
        place = ("query", "sql") if pipeline.query is not None else ("sink",)
        refuse_columns(pipeline.sink, rows)
        if isinstance(pipeline.sink, Table):
            place = ("sink", "partition_by")
            for name, expression in partition_columns(pipeline.sink).items():
                rows = rows.withColumn(name, f.expr(expression or f"`{name}`"))
                if isinstance(rows.schema[name].dataType, ArrayType | MapType | StructType):
                    raise PipelineError(f"the column {name} is not a single value: select one of its fields")
            place = ("sink", "table")
            _ask_for_package(spark, pipeline.sink)
    except PipelineError as error:
        return [Problem(pipeline.line_of(*place), str(error))]
    except PySparkException as error:
        line = pipeline.line_of(*place)
        inside = _SQL_LINE.search(str(error)) if place == ("query", "sql") else None
        if inside is not None:
            # TOML drops the line break behind an opening """, so the statement begins one line below
            below = text[line - 1].rstrip().endswith(('"""', "'''"))
            line += int(inside[1]) - 1 + below
        return [Problem(line, sentence_of(error))]
    return []
