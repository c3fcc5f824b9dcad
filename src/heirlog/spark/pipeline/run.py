"""Running a pipeline: the query around the batches, its end, and what it reports.

All checks are made before the query starts. A batch pipeline reads the records that exist now and ends. It keeps a
checkpoint too, so that the next run continues where it ended, even after a kill. A continuous one ends on request
(`until`, SIGINT or SIGTERM from the command).
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from heirlog.protocol.errors import KafkaError
from heirlog.spark import groups, session
from heirlog.spark.exactly_once import RUN_AGAIN
from heirlog.spark.java import JavaNotFoundError
from heirlog.spark.option_values import kafka_properties
from heirlog.spark.pipeline.batch import (
    RUNS_AGAIN_MAX,
    BatchBody,
    Step,
    apply_sql,
    as_letters,
    meaning,
    no_step,
    parsed_by,
    tables_of,
)
from heirlog.spark.pipeline.brokers import ANSWER_S, refuse_silent
from heirlog.spark.pipeline.checkpoint import (
    checkpoint_id,
    last_commit,
    offset_log,
    refuse_other_owner,
    refuse_patterns,
)
from heirlog.spark.pipeline.files import locked
from heirlog.spark.pipeline.load import load
from heirlog.spark.pipeline.looking import Look, look
from heirlog.spark.pipeline.report import Journal, Offsets, Report, sums_of
from heirlog.spark.pipeline.schema_text import mistake
from heirlog.spark.pipeline.spec import Files, Pipeline, PipelineError, Table, Topics
from heirlog.spark.pipeline.table import local_uri
from heirlog.spark.pipeline.values import CORRUPT_COLUMN, FILE
from heirlog.spark.worker_python import WorkerPythonError

_log = logging.getLogger("heirlog.spark")
_LOOK_EVERY_S = 1
_MASTER = re.compile(r"local(?:-cluster)?(?:\[.+\])?|yarn|(?:spark|k8s|sc)://.+")
_CONNECT_PORT = 15002
_CONNECT_S = 10
_GONE = (Py4JError, ConnectionError)
"""What a call of Java raises when the JVM has ended (and Py4JJavaError, which is an error inside Java)."""
_CAUSE = re.compile(r"^\s*(?:heirlog(?:\.\w+)+|(?:[\w$]+\.)*\w+(?:Error|Exception)): (?=\S)")
"""A line that names an error; not all of ours are called one (DataLoss)."""
_NAME_ALONE = re.compile(r"((?:Error|Exception):)[ \t]*\n\s*")
_CALL_OF_JAVA = "An error occurred while calling"
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] PipelineError: (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
"""What `Parsed.strict` raises inside a query."""
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark's, which print each refused statement with its trace as JSON; the exception says the same."""
_TASK_FAILED = "org.apache.spark.SparkException: "
_BELOW = re.compile(r"^\s*Caused by: (\S.*)", re.MULTILINE)
_OF_JAVA = re.compile(r"^: (\S+(?:Error|Exception): .+)", re.MULTILINE)
"""The line below "An error occurred while calling o1.x"."""


def run(
    pipeline: Pipeline | str | Path,
    spark: SparkSession | None = None,
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    until: Callable[[], bool] = lambda: False,
    on_step: Step = no_step,
    on_look: Callable[[Look], None] | None = None,
    brokers_timeout_s: float = ANSWER_S,
    on_wait: Callable[[str], None] = _log.warning,
) -> Report:
    """Run until the input is read (batch) or `until()` is true (continuous); what this run did.

    `spark` is a session to use; without one, `master` and `conf` create one. `on_step` is called with (`staged` |
    `renamed` | `committed`, batch number), and `on_look` every second with what runs. Brokers
    that do not answer at the start are waited for `brokers_timeout_s`, and `on_wait` gets a sentence soon. Raises
    PipelineError if none answers by then, if the file is wrong, if it does not fit its table or checkpoint, or if a
    batch failed. Visible rows stay visible, and the next run continues from there.
    """
    if not isinstance(pipeline, Pipeline):
        pipeline = load(pipeline)
    with ExitStack() as held:
        for part in pipeline.parts:
            held.enter_context(locked(Path(part.checkpoint)))
            refuse_other_owner(part)
            for table in tables_of(part):
                held.enter_context(locked(table.path))
                table.refuse_other_owner(checkpoint_id(part.checkpoint), meaning(part))
                table.clear_staging()
        refuse_silent(pipeline, brokers_timeout_s, on_wait)
        before = sums_of(pipeline)
        log = None
        if spark is None:
            if "://" not in pipeline.checkpoint:
                log = Path(f"{pipeline.checkpoint}.spark.log")
                log.unlink(missing_ok=True)
            spark = start_spark(master, conf, pipeline.name, log)
        try:
            _run(pipeline, spark, until, on_step, on_look)
        except (PySparkException, *_GONE) as error:
            if not until():
                raise PipelineError(_with_log(error, log)) from error
            # a signal to the process group ends Spark too; the next run does what was left
            _log.info("Spark ended before its query did: %s", sentence_of(error))
        _commit_last(pipeline)
    return _difference(before, sums_of(pipeline))


def _run(
    pipeline: Pipeline,
    spark: SparkSession,
    until: Callable[[], bool],
    on_step: Step,
    on_look: Callable[[Look], None] | None,
) -> None:
    """All queries until they end. A batch that has to run again does so in its query (`BatchBody`), but a query over
    the stream has changed its state by then: such queries are started again, from their checkpoints."""
    is_over_stream = pipeline.query is not None and pipeline.query.over == "stream"
    left, before = 0, None
    while True:
        known, *_ = Journal(pipeline.checkpoint).read()
        if known != before:
            left, before = RUNS_AGAIN_MAX if is_over_stream else 0, known
        queries = _start(pipeline, read(spark, pipeline), on_step)
        shown = None if on_look is None else partial(_show, spark, queries[0], on_look)
        try:
            return _watch(pipeline, queries, until, on_step, known, shown)
        except PySparkException as error:
            if not left or RUN_AGAIN not in str(error):
                raise
            left -= 1
            _log.warning("the queries start again, because a task of a batch was repeated")


def _with_log(error: PySparkException | Py4JError | ConnectionError, log: Path | None) -> str:
    """The error message, and where Spark's own log is; heirlog's own errors need no log."""
    sentence = sentence_of(error)
    is_ours = "PipelineError: " in _text_of(error)
    return sentence if is_ours or log is None or not log.exists() else f"{sentence.rstrip('.')}. Spark's log is {log}"


def start_spark(master: str, conf: Mapping[str, str] | None, app_name: str, log: Path | None = None) -> SparkSession:
    """As `session.start`. Raises PipelineError where there is no Java, or Spark does not start as it was asked to."""
    if not _MASTER.fullmatch(master):
        raise PipelineError(
            f"Spark's master is local[*], local[N], spark://host:port, yarn, k8s://… or sc://host:port, not {master!r}"
        )
    if master.startswith("sc://"):
        _refuse_silence(master)
    for name in _QUERY_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    try:
        return session.start(master, conf, app_name, log)
    except (JavaNotFoundError, WorkerPythonError, PySparkException, *_GONE) as error:
        raise PipelineError(f"Spark did not start with the master {master}: {sentence_of(error)}") from error


def _refuse_silence(master: str) -> None:
    """Spark Connect silently tries an address without a server for ten minutes."""
    if any(name.lower() in ("grpc_proxy", "https_proxy", "http_proxy") for name in os.environ):
        return
    try:
        place = urlsplit(master)
        socket.create_connection((place.hostname or "", place.port or _CONNECT_PORT), _CONNECT_S).close()
    except (OSError, ValueError) as error:
        raise PipelineError(f"no Spark Connect server answers at {master}: {error}") from error


def read(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The source as a stream of rows, before anything is done to them."""
    source = pipeline.source
    if isinstance(source, Topics):
        # without a setting a pipeline starts at the earliest offset: Spark's own default would skip existing records
        options = {"startingoffsets": "earliest", **source.spark_options}
        return spark.readStream.format("heirlog").options(**options).load()
    rows = _read_files(spark, source)
    # a batch no longer knows its files, so the stream notes them for rows that may be refused
    is_noted = CORRUPT_COLUMN in rows.columns or (source.format == "text" and isinstance(pipeline.sink, Table))
    return rows.withColumn(FILE, f.col("_metadata.file_path")) if is_noted else rows


def _read_files(spark: SparkSession, source: Files) -> DataFrame:
    if not Path(source.path).is_dir() and "://" not in source.path:
        raise PipelineError(f"there is no directory {source.path} to read files from")
    found = (os.path.join(folder, name) for folder, _, names in os.walk(source.path) for name in names)
    refuse_patterns(file for file in found if os.path.basename(file)[0] not in "._")
    # by default Spark skips files that are a week older than the newest one, which unpacked archives contain
    reader = spark.readStream.format(source.format).option("maxFileAge", "36500d").options(**source.options)
    if source.format in ("csv", "json"):
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT_COLUMN)
        given = source.schema or ""
        try:
            reader = reader.schema(f"{given.rstrip().rstrip(',')}\n, {CORRUPT_COLUMN} STRING")
        except AnalysisException as error:
            raise PipelineError(f"the schema of [source] does not fit: {mistake(given, error)}") from error
    elif source.format == "parquet":
        # the first files say what the columns are, where the pipeline does not
        reader = reader.schema(source.schema or spark.read.parquet(source.path).schema)
    return reader.load(source.path)


def _start(pipeline: Pipeline, rows: DataFrame, on_step: Step) -> list[StreamingQuery]:
    main, *aside = pipeline.parts
    query = pipeline.query
    if query is None or query.over == "batch":
        return [_writer(main, rows).foreachBatch(BatchBody(main, on_step)).start()]
    parsed = parsed_by(pipeline, rows)
    kept = parsed.good if aside else parsed.strict
    if query.watermark is not None:
        kept = kept.withWatermark(*query.watermark)
    stream = _writer(main, apply_sql(kept, query)).outputMode(query.output_mode)
    started = [stream.foreachBatch(BatchBody(main, on_step, prepared=True)).start()]
    for part in aside:
        started.append(
            _writer(part, as_letters(part.sink, parsed.bad)).foreachBatch(BatchBody(part, prepared=True)).start()
        )
    return started


def _writer(pipeline: Pipeline, rows: DataFrame) -> DataStreamWriter:
    writer = rows.writeStream.queryName(pipeline.name).option("checkpointLocation", local_uri(pipeline.checkpoint))
    if pipeline.mode == "batch":
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=pipeline.every)


def _show(spark: SparkSession, query: StreamingQuery, on_look: Callable[[Look], None]) -> None:
    on_look(look(spark, query))


def _watch(
    pipeline: Pipeline,
    queries: list[StreamingQuery],
    until: Callable[[], bool],
    on_step: Step,
    known: int,
    show: Callable[[], None] | None = None,
) -> None:
    """Wait until all queries end, one fails, or they are asked to end. Reports the batches that Spark commits
    meanwhile.
    """
    committed = known
    running = list(queries)
    try:
        while running and not until():
            running = [query for query in running if not query.awaitTermination(_LOOK_EVERY_S)]
            while (Path(pipeline.checkpoint) / "commits" / str(committed + 1)).exists():
                committed += 1
                on_step("committed", committed)
            if show is not None and running:
                show()
    finally:
        for query in queries:
            query.stop()


def _commit_last(pipeline: Pipeline) -> None:
    """Commit the offsets of the last batch: with `commitGroup` the source commits a batch only when the next one
    begins. The checkpoint names the last batch, even if it ended in a killed run or while the query was stopping.
    """
    source, checkpoint = pipeline.source, pipeline.checkpoint
    if not isinstance(source, Topics):
        return
    group = source.options.get("commitgroup")
    done = offset_log(checkpoint, last_commit(checkpoint))
    if group and done.offsets:
        try:
            groups.commit(kafka_properties(source.spark_options), group, done)
        except (OSError, KafkaError) as error:
            # for tools that watch the lag: what the run did is done all the same
            _log.warning("offsets of group %s could not be committed: %s", group, error)


def _difference(before: Report, after: Report) -> Report:
    """What happened between two readings of the sums; offsets from where the first one ended."""
    offsets: Offsets = {}
    for topic, partitions in after.offsets.items():
        for partition, (first, end) in partitions.items():
            start = before.offsets.get(topic, {}).get(partition, [first, first])[1]
            if end > start:
                offsets.setdefault(topic, {})[partition] = [start, end]
    lost = {cause: count - before.lost.get(cause, 0) for cause, count in after.lost.items()}
    return Report(
        after.batches - before.batches,
        after.rows_in - before.rows_in,
        after.rows_out - before.rows_out,
        after.rejected - before.rejected,
        offsets,
        [loss for loss in after.losses if loss not in before.losses],
        {cause: count for cause, count in lost.items() if count},
    )


def sentence_of(error: PySparkException | Py4JError | ConnectionError | JavaNotFoundError | WorkerPythonError) -> str:
    """What went wrong, without the frames of two languages around it.

    A failure inside a batch arrives as a Python traceback inside a Java exception inside a Python exception; the last
    line that names an error before Spark's description of the query is the cause.
    """
    text = _text_of(error).partition("=== Streaming Query ===")[0]
    if isinstance(error, _GONE) and not (isinstance(error, Py4JJavaError) and text):
        return (
            "Spark's Java process ended, its log may say why. All finished batches are stored: run the pipeline "
            "again to continue"
        )
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[1]
    # what Spark's parser says begins a line below its name
    text = _NAME_ALONE.sub(r"\1 ", text)
    causes = [line for line in text.splitlines() if _CAUSE.match(line) and _CALL_OF_JAVA not in line]
    if causes:
        return re.sub(_CAUSE, "", causes[-1]).strip()
    java = _OF_JAVA.search(text)
    if java is not None:
        # of a task that failed Spark says where; why it did stands last
        below = _BELOW.findall(text) if java[1].startswith(_TASK_FAILED) else []
        return " ".join([java[1], *below[-1:]])
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _text_of(error: Exception) -> str:
    """Empty if Java has ended since: the text of an error of Java's is asked for when it is printed."""
    try:
        return str(error)
    except _GONE:
        return ""
