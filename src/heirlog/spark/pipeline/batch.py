"""What happens to one micro-batch.

    parse -> SQL -> stage -> (dead letters visible) -> (table visible) -> journal; then Spark commits the number

Rejected rows become visible before the table: a reader that sees batch N in the table can find its rejected rows. Rows
are counted while they are written, not by reading them twice; only a batch with rejected rows is read again, for them.

The object is pickled to the process that runs `foreachBatch` (with Spark Connect the server), so it contains only
values.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkAssertionError, PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

import heirlog.spark
from heirlog.spark import exactly_once
from heirlog.spark.offset_limits import TopicPartition
from heirlog.spark.pipeline import lakes
from heirlog.spark.pipeline.checkpoint import claim, flush_plan, known_id, offset_log, planned_files, refuse_patterns
from heirlog.spark.pipeline.newest import kept_newest, newest
from heirlog.spark.pipeline.report import Batch, Journal, covered_by
from heirlog.spark.pipeline.spec import Files, Pipeline, PipelineError, Query, Table, Topics, TopicSink
from heirlog.spark.pipeline.table import BatchTable, local_uri
from heirlog.spark.pipeline.values import ADVICE, PLACE, REASON, Parsed, parse, parse_files
from heirlog.spark.sink import check_schema
from heirlog.spark.sink_options import sink_options

_log = logging.getLogger("heirlog.spark")
INPUT = "input"
RUNS_AGAIN_MAX = 2
"""Of a batch for topics in which a task was repeated."""
LAKES = ("delta", "iceberg")
_HEADERS = "array<struct<key: string, value: binary>>"
_SENSITIVE = re.compile(r"passw|jaas|secret|token|credential|sasl|\.key\b|account\.key", re.IGNORECASE)
_STEP = re.compile(r"[\s:+-]*([A-Z]\w*)")
_SUBQUERY = re.compile(r"\b(?:exists|list|scalar-subquery|lateral-subquery)#\d")
_PASS_ALL_ON = frozenset(
    {
        "CollectMetrics",
        "LogicalRDD",
        "Project",
        "Filter",
        "Aggregate",
        "Distinct",
        "Window",
        "Generate",
        "Expand",
        "Union",
    }
    | {"SubqueryAlias", "View", "WithCTE", "CTERelationDef", "CTERelationRef"}
)
"""Steps of a plan that take every row which comes to them, once."""
Step = Callable[[str, int], None]


def no_step(step: str, batch_id: int) -> None:
    """Ignore the steps."""


@dataclass
class BatchBody:
    """Called by Spark with each batch. `on_step` is called with `staged` and `renamed` and the batch's number."""

    pipeline: Pipeline
    on_step: Step = no_step
    prepared: bool = False
    """The rows are written as they are: with a query over the stream, they have been parsed and queried before."""
    begun: bool = False
    """A batch has run in this process, so the next one has not run before in any process."""

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        # with a query over the stream another run would change its state twice
        for _ in range(0 if self.prepared else RUNS_AGAIN_MAX):
            try:
                self._run(rows, batch_id)
                return
            except (PySparkException, Py4JJavaError) as error:
                if exactly_once.RUN_AGAIN not in str(error):
                    raise
                _log.warning("batch %d runs again, because a task of it was repeated", batch_id)
        self._run(rows, batch_id)

    def _run(self, rows: DataFrame, batch_id: int) -> None:
        pipeline, started = self.pipeline, time.time()
        tables = tables_of(pipeline)
        flush_plan(pipeline.checkpoint, batch_id)
        if isinstance(pipeline.source, Files):
            refuse_patterns(planned_files(pipeline.checkpoint))
        known = known_id(pipeline.checkpoint)
        for table in tables:
            table.claim(pipeline.checkpoint, known, meaning(pipeline))
        claim(pipeline)
        if tables and tables[-1].holds(batch_id):
            # cut short after its last rename: only Spark's commit and perhaps the journal are missing. Dead letters
            # are visible before that, or were asked for since, when nothing of this batch was rejected
            if batch_id in tables[-1].batches():
                Journal(pipeline.checkpoint).add(Batch(**tables[-1].manifest(batch_id)))
            return
        before, after = (offset_log(pipeline.checkpoint, number) for number in (batch_id - 1, batch_id))
        is_lake = isinstance(pipeline.sink, Table) and pipeline.sink.format in LAKES
        # a lake that has the batch skips it, and then no rows are counted
        on_the_way = self.begun or not is_lake
        self.begun = True
        if self.prepared:
            counted = _Counted(Parsed(rows, False), None, [], on_the_way)
        else:
            # with the option `columns` the rows may lack topic, partition and offset
            located = {"topic", "partition", "offset"} <= set(rows.columns)
            fresh = sorted(set(after.offsets) - set(before.offsets)) if located else []
            parsed = parsed_by(pipeline, rows, batch_id)
            if is_lake and pipeline.dead_letters is None:
                # its commit cannot be held back until the rejected rows are counted
                parsed = Parsed(parsed.strict, False)
            counted = _Counted(parsed, pipeline.query, fresh, on_the_way)
        self._write(pipeline.sink, counted.out, batch_id, tables)
        self._write_rejected(counted, batch_id, tables)
        for table in tables:
            is_sink = isinstance(pipeline.sink, Table) and str(table.path) == pipeline.sink.path
            _refuse_missing(table, batch_id, counted.rows_out if is_sink else counted.rejected)
        self.on_step("staged", batch_id)
        done = Batch(
            batch_id,
            counted.rows_in,
            counted.rows_out,
            counted.rejected,
            covered_by(before, after, counted.first_offsets),
            int(started * 1000),
            int((time.time() - started) * 1000),
            [loss.as_json() for loss in after.losses],
        )
        counted.release()
        for table in tables:
            if not table.holds(batch_id):
                table.publish(batch_id, asdict(done))
        self.on_step("renamed", batch_id)
        Journal(pipeline.checkpoint).add(done)

    def _write_rejected(self, counted: _Counted, batch_id: int, tables: list[BatchTable]) -> None:
        letters = self.pipeline.dead_letters
        if not counted.rejected:
            return
        if letters is None:
            named = [name for name in (*PLACE, "file", "reason") if name in counted.parsed.bad.columns]
            row = counted.parsed.bad.select(*named).first()
            found = row.asDict() if row else {}
            reason = found.pop("reason", "not known")
            where = ", ".join(f"{name} {value}" for name, value in found.items()) or "its columns do not say which"
            raise PipelineError(
                f"{counted.rejected} of {counted.rows_in} rows do not parse, one of them ({where}): {reason}; {ADVICE}"
            )
        self._write(letters, as_letters(letters, counted.parsed.bad), batch_id, tables)

    def _write(self, sink: Table | TopicSink, rows: DataFrame, batch_id: int, tables: list[BatchTable]) -> None:
        if isinstance(sink, TopicSink):
            known = known_id(self.pipeline.checkpoint)
            purpose = "sink" if sink is self.pipeline.sink else "dead-letters"
            options = sink.batch_options(f"heirlog-pipeline-{known}-{purpose}", f"{known}/{batch_id}/{purpose}")
            heirlog.spark.write(topic_rows(rows), **options)
            return
        refuse_columns(sink, rows)
        columns = partition_columns(sink)
        for name, expression in columns.items():
            if expression:
                rows = rows.withColumn(name, f.expr(expression))
        if sink.format == "parquet":
            (table,) = (table for table in tables if str(table.path) == sink.path)
            if not table.holds(batch_id):
                # Spark's default for times, INT96, is read by fewer, and merging files would lose it
                rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
                rows.write.partitionBy(*columns).parquet(local_uri(str(table.stage(batch_id))))
            return
        lakes.add_batch(sink, rows, list(columns), known_id(self.pipeline.checkpoint), batch_id)


class _Counted:
    """The rows to write, which are counted while they are written.

    on_the_way: False if they may not be written in the end; then they are read once more to be counted.
    """

    def __init__(self, parsed: Parsed, query: Query | None, fresh: list[TopicPartition], on_the_way: bool) -> None:
        self._fresh = fresh
        self._input = Observation() if on_the_way else None
        self._output = Observation() if on_the_way else None
        self._uncounted = parsed.rows
        self._counts = counts = [f.count(f.lit(1)).alias("rows")]
        if parsed.may_reject:
            counts.append(f.count_if(f.col(REASON).isNotNull()).alias("rejected"))
        for index, (topic, partition) in enumerate(fresh):
            here = (f.col("topic") == topic) & (f.col("partition") == partition)
            counts.append(f.min(f.when(here, f.col("offset"))).alias(f"first_{index}"))
        self.parsed = Parsed(_watched(parsed.rows, self._input, counts), parsed.may_reject)
        out = self.parsed.good
        self._kept: DataFrame | None = None
        if query is not None:
            out = apply_sql(out, query)
            if not _reads_all_once(out):
                # kept, so that the source is read once, and counted where they are kept
                self._input = None
                self._kept = self._uncounted = parsed.rows.persist()
                self.parsed = Parsed(self._kept, parsed.may_reject)
                out = apply_sql(self.parsed.good, query)
        self._uncounted_out = out
        self.out = _watched(out, self._output, counts[:1])

    @cached_property
    def _seen(self) -> dict[str, Any]:
        return _observed(self._input, self._uncounted, self._counts)

    @property
    def rows_in(self) -> int:
        return int(self._seen["rows"] or 0)

    @property
    def rejected(self) -> int:
        return int(self._seen.get("rejected") or 0)

    @cached_property
    def rows_out(self) -> int:
        return int(_observed(self._output, self._uncounted_out, self._counts[:1])["rows"] or 0)

    @property
    def first_offsets(self) -> dict[TopicPartition, int]:
        """The first offset read of each partition that has no earlier batch."""
        found = ((where, self._seen.get(f"first_{index}")) for index, where in enumerate(self._fresh))
        return {where: int(first) for where, first in found if first is not None}

    def release(self) -> None:
        if self._kept is not None:
            self._kept.unpersist()


def _reads_all_once(rows: DataFrame) -> bool:
    """Whether each row of the input goes through the statement exactly once, so that it can be counted there.

    LIMIT and joins may end before they have read all rows, ORDER BY reads a sample first, and a statement may read its
    input twice or not at all. So the plan may have only steps that do none of this. Over Spark Connect the plan is not
    visible.
    """
    java = getattr(rows, "_jdf", None)
    if java is None:
        return False
    plan = java.queryExecution().analyzed().toString()
    steps = [found[1] if (found := _STEP.match(line)) else "" for line in plan.splitlines()]
    once = steps.count("CollectMetrics") == 1 and steps.count("CTERelationRef") <= 1
    return once and _PASS_ALL_ON.issuperset(steps) and not _SUBQUERY.search(plan)


def _watched(rows: DataFrame, observation: Observation | None, counts: list[Column]) -> DataFrame:
    return rows if observation is None else rows.observe(observation, *counts)


def _observed(observation: Observation | None, rows: DataFrame, counts: list[Column]) -> dict[str, Any]:
    """The counts of the written rows. If the optimiser saw that the rows cannot give a result (nothing to group or to
    join, a condition that is never true), it removed the counting together with them, and they are counted now."""
    if observation is not None:
        try:
            seen = observation.get
        except (Py4JJavaError, PySparkAssertionError):
            seen = {}
        if seen:
            return seen
    counted = rows.agg(*counts).first()
    assert counted is not None
    return counted.asDict()


def _refuse_missing(table: BatchTable, batch_id: int, rows: int) -> None:
    """If executors do not see this machine's directory, their rows are elsewhere, and the batch looks empty."""
    if not table.holds(batch_id) and table.staged_rows(batch_id) < rows:
        raise PipelineError(
            f"{rows} rows of batch {batch_id} were written for {table.path}, and {table.staged_rows(batch_id)} are "
            "there: every executor must see the same file system at the same path. Nothing was made visible"
        )


def parsed_by(pipeline: Pipeline, rows: DataFrame, batch_id: int | None = None) -> Parsed:
    """The rows of the source, read as the file says. batch_id: None outside of a batch."""
    if isinstance(pipeline.source, Files):
        return parse_files(rows, pipeline.source)
    values = pipeline.values
    if not values.subjects:
        return parse(rows, values)
    return parse(
        rows, values, newest(values) if batch_id is None else kept_newest(values, pipeline.checkpoint, batch_id)
    )


def apply_sql(rows: DataFrame, query: Query) -> DataFrame:
    """The statement with `rows` as its view `input`."""
    rows.createOrReplaceTempView(INPUT)
    return rows.sparkSession.sql(query.sql)


def as_letters(sink: Table | TopicSink, rejected: DataFrame) -> DataFrame:
    """Rejected rows as they are written: a topic has headers for the columns of a table. Text in a table must be UTF-8,
    or its other readers fail: bytes that are not UTF-8 become replacement characters."""
    if isinstance(sink, Table):
        texts = [column.name for column in rejected.schema if column.dataType.typeName() == "string"]
        return rejected.withColumns({name: f.call_function("make_valid_utf8", f.col(name)) for name in texts})
    said = [name for name in ("reason", "topic", "partition", "offset", "file") if name in rejected.columns]
    headers = f.array(*(_header(name, f.col(name).cast("string")) for name in said))
    if "headers" in rejected.columns:
        # those that the record came with stay in front
        headers = f.concat(f.coalesce(f.col("headers"), f.array().cast(_HEADERS)), headers)
    kept = [name for name in ("key", "value") if name in rejected.columns]
    return rejected.select(*kept, headers.alias("headers"))


def topic_rows(rows: DataFrame) -> DataFrame:
    """A column `value` of bytes or text is written unchanged, any other type as JSON. Without such a column, the whole
    row except `key` and `headers` is written as JSON. The partition of the source is not kept: the key decides.
    """
    kept = [name for name in ("key", "headers") if name in rows.columns]
    if "value" not in rows.columns:
        value = f.to_json(f.struct(*(f.col(name) for name in rows.columns if name not in kept)))
    elif rows.schema["value"].dataType.typeName() in ("binary", "string"):
        value = f.col("value")
    else:
        value = f.to_json(f.col("value"))
    return rows.select(*kept, value.alias("value"))


def _header(name: str, value: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), f.encode(value, "UTF-8").alias("value"))


def refuse_columns(sink: Table | TopicSink, rows: DataFrame) -> None:
    """Raises PipelineError where rows of these columns cannot be written, or could not be read there afterwards."""
    if isinstance(sink, TopicSink):
        try:
            check_schema(sink_options(sink.batch_options("-", "-")), topic_rows(rows).schema)
        except ValueError as error:
            raise PipelineError(str(error)) from error
        return
    names = [name.lower() for name in rows.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PipelineError(f"there are several columns {', '.join(twice)}: give each a name of its own")
    if sink.format != "parquet":
        return
    if "batch_id" in names:
        raise PipelineError(
            "`batch_id` is already the first level of the table's directories: give the column another name"
        )
    if {name.lower() for name in partition_columns(sink)}.issuperset(names):
        raise PipelineError("every column is in partition_by, so the files would have no columns: select one more")
    typeless = [column.name for column in rows.schema if column.dataType.typeName() in ("void", "interval")]
    if typeless:
        raise PipelineError(f"Parquet has no type for the column {typeless[0]}: cast it")


def partition_columns(table: Table) -> dict[str, str]:
    """Column -> expression: `day` is a column of the rows, `day = to_date(timestamp)` makes one."""
    split = (item.partition("=") for item in table.partition_by)
    return {name.strip(): expression.strip() for name, _, expression in split}


def tables_of(pipeline: Pipeline) -> list[BatchTable]:
    """The directories that hold each batch once; dead letters first, as they become visible first."""
    sinks = (pipeline.dead_letters, pipeline.sink)
    return [BatchTable(sink.path) for sink in sinks if isinstance(sink, Table) and sink.format == "parquet"]


def meaning(pipeline: Pipeline) -> dict[str, Any]:
    """Everything that determines the rows of a batch, as JSON.

    The brokers' addresses, the credentials and the place of rejected rows are not part of it: after a bad row stopped
    the pipeline, a user may set a place for it and continue.
    """
    source, query = pipeline.source, pipeline.query
    if isinstance(source, Topics):
        read = {"topics": list(source.names), "pattern": source.pattern}
        read["headers"] = source.options.get("includeheaders")
        if "columns" in source.options:
            read["columns"] = source.options["columns"]
    else:
        read = {"files": source.path, "format": source.format, "schema": source.schema, **_harmless(source.options)}
    return {
        "source": read,
        "value": pipeline.values.meaning,
        "query": None if query is None else {**asdict(query), "watermark": list(query.watermark or ())},
        "partition_by": list(pipeline.sink.partition_by) if isinstance(pipeline.sink, Table) else [],
    }


def _harmless(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(options.items()) if not _SENSITIVE.search(name)}
