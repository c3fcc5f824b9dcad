"""Reading a pipeline file: its meaning as values, or everything that is wrong in it, each with its line.

This module checks only the file itself; check.py checks whether it fits the existing tables, topics and directories.
Relative paths are relative to the file, so that a pipeline may be started from any directory.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal, cast

from heirlog.spark.option_names import SOURCE_OPTIONS, STRATEGIES
from heirlog.spark.pipeline.sections import MISSING, Document, Section
from heirlog.spark.pipeline.spec import Files, Pipeline, PipelineError, Problem, Query, Table, Topics, TopicSink, Values
from heirlog.spark.pipeline.toml_lines import line_of_each_key
from heirlog.spark.schemas.registry import Registry

FILE_FORMATS = ("text", "csv", "json", "parquet")
VALUE_FORMATS = ("raw", "text", "json", "avro")
TABLE_FORMATS = ("parquet", "delta", "iceberg")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CATALOG_NAME = re.compile(r"\w+(?:\.\w+)+")
_FIRST_WORD = re.compile(r"\A(?:\s|\(|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES")
_NO_WORDS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""Texts, quoted names and comments."""
_INNERMOST = re.compile(r"\([^()]*\)")
_WRITES = re.compile(
    r"\b(?:INSERT\s+(?:INTO|OVERWRITE)|DELETE\s+FROM|MERGE\s+(?:WITH\s+SCHEMA\s+EVOLUTION\s+)?INTO|UPDATE\s+\S+\s+SET)\b",
    re.IGNORECASE,
)
_SERVERS = "kafka.bootstrap.servers"
_DURATION = re.compile(r"\d+ (?:millisecond|second|minute|hour|day)s?")


def load(path: str | Path) -> Pipeline:
    """Read a pipeline file. Raises PipelineError with every problem that the file has in itself."""
    file = Path(path)
    try:
        # some editors begin a file with a mark that TOML does not know
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PipelineError(f"cannot read the pipeline file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PipelineError(f"{file} is not UTF-8 text, so it is not a pipeline file") from error
    return parse(text, file)


def parse(text: str, file: Path) -> Pipeline:
    """The pipeline that `text`, the content of `file`, describes. Raises PipelineError as `load` does."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found[1]) if found else len(text.splitlines())
        problem = Problem(line, f"this is not valid TOML: {error}")
        raise PipelineError(f"{file}: line {line}: {problem.sentence}", (problem,)) from error
    except (ValueError, RecursionError) as error:
        # a number of thousands of digits, arrays nested a thousand deep: TOML allows them, Python does not
        problem = Problem(1, f"this cannot be read: {error}")
        raise PipelineError(f"{file}: {problem.sentence}", (problem,)) from error
    document = Document(values, line_of_each_key(text), file.absolute().parent)
    pipeline = _pipeline(document)
    if document.problems:
        problems = tuple(sorted(document.problems, key=lambda problem: problem.line))
        first = problems[0]
        more = f" (and {len(problems) - 1} more: heirlog pipeline check {file})" if len(problems) > 1 else ""
        raise PipelineError(f"{file}: line {first.line}: {first.sentence}{more}", problems)
    return cast(Pipeline, pipeline)


def _pipeline(document: Document) -> Pipeline | None:
    top = Section(document, (), document.values)
    name = top.text("name")
    if name and not _NAME.fullmatch(name):
        document.problem(("name",), f"the name {name!r} may hold letters, digits, '.', '_' and '-' only")
    mode = top.choice("mode", ("batch", "continuous"), "batch")
    checkpoint = top.local_path("checkpoint")
    every = top.text("every", "0 seconds")
    if every and not _DURATION.fullmatch(every):
        document.problem(("every",), f"`every` is a time like '10 seconds', not {every!r}")
    top.known("source", "value", "query", "sink", "dead_letters")
    source = _source(document)
    values = _values(document.section("value"), source)
    query = _query(document.section("query"))
    sink = _sink(document, "sink", source)
    letters = _sink(document, "dead_letters", source)
    if source is None or sink is None:
        return None
    _separate(document, checkpoint, source, sink, letters)
    for place, written in (("sink", sink), ("dead_letters", letters)):
        if isinstance(source, Topics) and isinstance(written, TopicSink) and _is_read(source, written):
            document.problem(
                (place, "topic"), f"the pipeline would read what it writes to {written.topic}: name another topic"
            )
    if query is not None and query.over == "stream" and values.subjects:
        sentence = "a query over the stream keeps its columns, and `subject` may change them: give a `schema`"
        document.problem(("value",), sentence)
    if query is not None and query.over == "stream" and query.output_mode == "append":
        _ask_for_watermark(document, query)
    return Pipeline(
        name,
        cast(Literal["batch", "continuous"], mode),
        checkpoint,
        every,
        source,
        values,
        query,
        sink,
        letters,
        document.lines,
    )


def _ask_for_watermark(document: Document, query: Query) -> None:
    if query.watermark is None and re.search(r"\bgroup\s+by\b", query.sql, re.IGNORECASE):
        document.problem(
            ("query", "sql"),
            "a grouping over the stream in output mode append needs a watermark; give `watermark`, or use "
            "over = 'batch' or output_mode = 'update'",
        )


def _source(document: Document) -> Topics | Files | None:
    section = document.section("source")
    if section is None:
        document.problem((), "there is no [source]: give `topics` and `bootstrap_servers`, or `files` and `format`")
        return None
    kinds = section.exactly_one("topics", "topic_pattern", "files")
    if kinds == "files":
        form = section.choice("format", FILE_FORMATS)
        path = section.path("files")
        schema = section.text("schema", None)
        if form in ("csv", "json") and schema is None:
            section.wrong(
                "format", f"files of {form} need a `schema` such as 'id BIGINT, name STRING': a run does not guess it"
            )
        options = section.options()
        section.known()
        return Files(path, form, schema, options)
    if kinds is None:
        section.ignore()
        return None
    names = section.texts("topics") if kinds == "topics" else ()
    pattern = section.text("topic_pattern") if kinds == "topic_pattern" else None
    if section.values.get("topics") == []:
        section.wrong("topics", "`topics` names no topic")
    if any("," in name for name in names):
        section.wrong("topics", "a topic name cannot contain a comma: write each topic as a separate string")
    if pattern is not None:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            section.wrong("topic_pattern", f"{pattern!r} is not a regular expression: {error}")
    bootstrap = section.text("bootstrap_servers")
    options = section.topic_options(
        SOURCE_OPTIONS,
        {**dict.fromkeys(STRATEGIES, "topics"), "subscribePattern": "topic_pattern", _SERVERS: "bootstrap_servers"},
    )
    section.known()
    return Topics(bootstrap, names, pattern, options)


def _values(section: Section | None, source: Topics | Files | None) -> Values:
    if section is None:
        return Values()
    if isinstance(source, Files):
        section.wrong("", "[value] says how a record's value is read; files have `format` and `schema` instead")
    names = [name for name, one in section.values.items() if isinstance(one, dict) and name != "registry"]
    if not names:
        return _one_kind(section, None)
    registry = _registry(section)
    sections = {name: one for name in names if (one := section.table(name)) is not None}
    section.known()
    kinds = {name: _one_kind(one, registry, True) for name, one in sections.items()}
    seen: dict[str, str] = {}
    for name in kinds:
        for topic in kinds[name].topics:
            if topic in seen:
                sections[name].wrong("topics", f"the topic {topic} has its values in [value.{seen[topic]}] already")
            elif isinstance(source, Topics) and source.names and topic not in source.names:
                sections[name].wrong("topics", f"the topic {topic} is not one of those in [source]")
            seen[topic] = name
    if isinstance(source, Topics) and "topic" not in source.options.get("columns", "topic").replace(" ", "").split(","):
        section.wrong("", "values of different topics need the column topic: add it to the option `columns`")
    return Values(kinds=kinds)


def _one_kind(section: Section, outer: Registry | None, is_named: bool = False) -> Values:
    """outer: the registry of [value], for its tables."""
    form = section.choice("format", VALUE_FORMATS, "raw")
    schema = section.text("schema", None)
    schema_file = section.path("schema_file", None)
    if schema_file is not None:
        if schema is not None:
            section.wrong("schema_file", "there is a `schema` and a `schema_file`: keep one of them")
        try:
            schema = Path(schema_file).read_text(encoding="utf-8")
        except OSError as error:
            section.wrong("schema_file", f"cannot read {schema_file}: {error.strerror}")
        except UnicodeDecodeError:
            section.wrong("schema_file", f"{schema_file} is not UTF-8 text, so it is not a schema")
    registry = _registry(section)
    if registry is not None and form != "avro":
        section.wrong("registry", "a `registry` is for values of avro; json recognises the id before a value by itself")
    registry = (registry or outer) if form == "avro" else None
    subject = section.text("subject", None)
    if subject and registry is None:
        section.wrong("subject", "`subject` is for values of avro with a `registry`")
    if subject and schema:
        section.wrong("subject", "there is a `schema` and a `subject`: keep one of them")
    if form in ("json", "avro") and not schema and not subject:
        example = "'module STRING, line STRING'" if form == "json" else "the schema in Avro's JSON form"
        section.wrong("format", f"values of {form} need a `schema`, for example {example}")
    if form in ("raw", "text") and schema:
        section.wrong("schema", f"values of format {form} have no schema: remove it, or name another `format`")
    framing = section.flag("registry_framing", form == "json")
    topics = section.texts("topics") if is_named else ()
    if is_named and not topics:
        section.wrong("topics", f"[{'.'.join(section.path_of_table)}] lacks `topics`: the topics that have such values")
    section.known()
    return Values(form, schema, framing, registry, subject, topics)


def _registry(section: Section) -> Registry | None:
    """An address, or a table with it and the login."""
    if isinstance(section.values.get("registry"), dict):
        table = section.table("registry")
        assert table is not None
        login = {name: table.text(name, None) for name in ("username", "password", "token")}
        url, ca_file, is_global = table.text("url"), table.path("ca_file", None), table.flag("global_ids", False)
        table.known()
    else:
        url, ca_file, is_global, login = section.text("registry", None), None, False, {}
    if not url:
        return None
    try:
        return Registry(url, ca_file=ca_file, global_ids=is_global, **login)
    except ValueError as error:
        section.wrong("registry", str(error))
        return None


def _query(section: Section | None) -> Query | None:
    if section is None:
        return None
    sql = section.text("sql")
    first = _FIRST_WORD.search(sql)
    if sql and (first is None or first[1].upper() not in _QUERIES):
        # Spark would run a DROP at once, a check's too
        word = first[1] if first else sql.strip()[:20]
        section.wrong("sql", f"`sql` is a query and begins with {', '.join(_QUERIES)}, not with {word}")
    elif sql and (writes := _writes(sql)):
        section.wrong("sql", f"`sql` is a query, and this one would {writes}: [sink] says where its rows go")
    over = section.choice("over", ("batch", "stream"), "batch")
    output_mode = section.choice("output_mode", ("append", "update", "complete"), "append")
    if over == "batch" and output_mode != "append":
        section.wrong("output_mode", f"output mode {output_mode} is for over = 'stream'")
    watermark = None
    asked = section.table("watermark")
    if asked is not None:
        watermark = (asked.text("column"), asked.text("delay"))
        asked.known()
        if watermark[1] and not _DURATION.fullmatch(watermark[1]):
            asked.wrong("delay", f"`delay` is a time like '10 minutes', not {watermark[1]!r}")
        if over == "batch":
            section.wrong("watermark", "a watermark is for over = 'stream'")
    section.known()
    return Query(sql, cast(Literal["batch", "stream"], over), output_mode, watermark)


def _writes(sql: str) -> str | None:
    """Words that show that Spark would execute a statement at once, although it begins with WITH or FROM."""
    rest = _NO_WORDS.sub(" ", sql)
    while (shorter := _INNERMOST.sub(" ", rest)) != rest:
        rest = shorter
    found = _WRITES.search(rest)
    return found and found[0]


def _sink(document: Document, name: str, source: Topics | Files | None) -> Table | TopicSink | None:
    section = document.section(name)
    if section is None:
        if name == "sink":
            document.problem((), "there is no [sink]: give `table` or `topic`")
        return None
    kind = section.exactly_one("table", "topic")
    if kind is None:
        section.ignore()
        return None
    if kind == "table":
        form = section.choice("format", TABLE_FORMATS if name == "sink" else ("parquet",), "parquet")
        if form == "iceberg":
            path = section.text("table")
            if path and not _CATALOG_NAME.fullmatch(path):
                section.wrong("table", f"an Iceberg table is named catalog.namespace.table, not {path!r}")
        else:
            path = section.local_path("table") if form == "parquet" else section.path("table")
        partition_by = section.texts("partition_by")
        columns = [item.partition("=")[0].strip().lower() for item in partition_by]
        if "batch_id" in columns:
            section.wrong(
                "partition_by",
                "`batch_id` is already the first level of the table's directories: choose another column",
            )
        if form == "parquet" and any(column.startswith(("_", ".")) for column in columns):
            section.wrong(
                "partition_by", "readers of a directory ignore names that begin with '_' or '.': rename the column"
            )
        if "" in columns or len(set(columns)) < len(columns):
            section.wrong("partition_by", "each item is a column that no other item has, or 'column = expression'")
        section.known()
        return Table(path, form, partition_by)
    topic = section.text("topic")
    default = source.bootstrap_servers if isinstance(source, Topics) else MISSING
    bootstrap = section.text("bootstrap_servers", default)
    options = section.topic_options(("exactlyOnce", "commandConfig"), {"topic": "topic", _SERVERS: "bootstrap_servers"})
    section.known()
    return TopicSink(bootstrap, topic, options)


def _is_read(source: Topics, sink: TopicSink) -> bool:
    if source.bootstrap_servers != sink.bootstrap_servers:
        return False
    if source.pattern is None:
        return sink.topic in source.names
    try:
        return re.search(source.pattern, sink.topic) is not None
    except (re.error, OverflowError, RecursionError):
        return False


def _separate(
    document: Document,
    checkpoint: str,
    source: Topics | Files,
    sink: Table | TopicSink,
    letters: Table | TopicSink | None,
) -> None:
    """None of the directories may be inside another one: one would read or delete the other's files."""
    places = [("checkpoint", checkpoint)]
    if isinstance(source, Files):
        places.append(("source", source.path))
    tables = [(name, table) for name, table in (("sink", sink), ("dead_letters", letters)) if isinstance(table, Table)]
    places += [(name, table.path) for name, table in tables if table.format != "iceberg"]
    for index, (name, place) in enumerate(places):
        for other_name, other in places[:index]:
            if "://" in place or "://" in other or not place or not other:
                continue
            one, two = Path(place), Path(other)
            if one == two or one in two.parents or two in one.parents:
                document.problem((name,), f"{place} and {other} ({other_name}) contain each other: separate them")
