"""What a pipeline file says, as values; and everything that is wrong in it, each with its line.

    name, mode, checkpoint, every         the run
    [source]       topics | topic_pattern (+ bootstrap_servers), or files (+ format, schema); options
    [value]        format = raw | text | json | avro, schema, registry_framing          (topics only)
    [query]        sql over the view `input`; over = batch | stream, output_mode, watermark
    [sink]         table (+ format, partition_by), or topic (+ bootstrap_servers); options
    [dead_letters] table or topic, for rows that do not parse

Reading is total: a wrong file gives all its problems at once, not the first one. Relative paths are relative to the
file, so that a pipeline may be started from anywhere.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from heirlog.spark.pipeline.toml_lines import line_of_each_key

FILE_FORMATS = ("text", "csv", "json", "parquet")
VALUE_FORMATS = ("raw", "text", "json", "avro")
TABLE_FORMATS = ("parquet", "delta", "iceberg")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_DURATION = re.compile(r"\d+ (?:millisecond|second|minute|hour|day)s?")
_FROM_ENVIRONMENT = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a pipeline file, and what to do about it."""

    line: int
    sentence: str


class PipelineError(Exception):
    """A pipeline that cannot run: its file is wrong (`problems` says where), or what it finds does not fit it."""

    def __init__(self, sentence: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(sentence)
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Topics:
    """A source of records: named topics, or all whose name matches a pattern."""

    bootstrap_servers: str
    names: tuple[str, ...]
    pattern: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Files:
    """A source of rows: the files in a directory."""

    path: str
    format: str
    schema: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Values:
    """How the value of a record becomes columns."""

    format: str = "raw"
    schema: str | None = None
    registry_framing: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """SQL over the view `input`: on each batch by itself, or on the stream, with Spark's state."""

    sql: str
    over: Literal["batch", "stream"] = "batch"
    output_mode: str = "append"
    watermark: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    path: str
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicSink:
    bootstrap_servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline file that is right in itself; whether it fits what exists is `check`'s to say."""

    name: str
    mode: Literal["batch", "continuous"]
    checkpoint: str
    every: str
    source: Topics | Files
    values: Values
    query: Query | None
    sink: Table | TopicSink
    dead_letters: Table | TopicSink | None
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, *path: str) -> int:
        """The line of a key, of the table around it where the key is absent, else 1."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load(path: str | Path) -> Pipeline:
    """Read a pipeline file. Raises PipelineError with every problem that the file has in itself."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"cannot read the pipeline file {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PipelineError(f"{file} is not UTF-8 text, so it is no pipeline file") from error
    return parse(text, file)


def parse(text: str, file: Path) -> Pipeline:
    """The pipeline that `text` describes; `file` is where it stands. Raises PipelineError as `load` does."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found[1]) if found else len(text.splitlines())
        problem = Problem(line, f"this is not TOML: {error}")
        raise PipelineError(f"{file}: line {line}: {problem.sentence}", (problem,)) from error
    except (ValueError, RecursionError) as error:
        # a number of thousands of digits, arrays nested a thousand deep: TOML allows them, Python does not
        problem = Problem(1, f"this cannot be read: {error}")
        raise PipelineError(f"{file}: {problem.sentence}", (problem,)) from error
    reader = _Reader(line_of_each_key(text), file.absolute().parent)
    pipeline = reader.pipeline(document)
    if reader.problems:
        problems = tuple(sorted(reader.problems, key=lambda problem: problem.line))
        first = problems[0]
        more = f" (and {len(problems) - 1} more: heirlog pipeline check)" if len(problems) > 1 else ""
        raise PipelineError(f"{file}: line {first.line}: {first.sentence}{more}", problems)
    return cast(Pipeline, pipeline)


class _Reader:
    """Turns the document into values; a wrong value becomes a problem and a harmless stand-in."""

    def __init__(self, lines: Mapping[tuple[str, ...], int], folder: Path) -> None:
        self.lines = lines
        self.folder = folder
        self.problems: list[Problem] = []

    def problem(self, path: tuple[str, ...], sentence: str) -> None:
        while path and path not in self.lines:
            path = path[:-1]
        self.problems.append(Problem(self.lines.get(path, 1), sentence))

    def section(self, document: Mapping[str, Any], name: str) -> _Section | None:
        found = document.get(name)
        if found is None:
            return None
        if not isinstance(found, dict):
            self.problem((name,), f"`{name}` is a table: write [{name}] on a line of its own")
            return None
        return _Section(self, (name,), found)

    def pipeline(self, document: Mapping[str, Any]) -> Pipeline | None:
        top = _Section(self, (), document)
        name = top.text("name")
        if name and not _NAME.fullmatch(name):
            self.problem(("name",), f"the name {name!r} may hold letters, digits, '.', '_' and '-' only")
        mode = top.choice("mode", ("batch", "continuous"), "batch")
        checkpoint = top.local_path("checkpoint")
        every = top.text("every", "0 seconds")
        if not _DURATION.fullmatch(every):
            self.problem(("every",), f"`every` is a time like '10 seconds', not {every!r}")
        top.known("source", "value", "query", "sink", "dead_letters")
        source = self._source(self.section(document, "source"))
        values = self._values(self.section(document, "value"), source)
        query = self._query(self.section(document, "query"))
        sink = self._sink(self.section(document, "sink"), "sink", source)
        letters = self._sink(self.section(document, "dead_letters"), "dead_letters", source)
        if source is None or sink is None:
            return None
        self._places(checkpoint, source, sink, letters)
        if query is not None and query.over == "stream" and mode == "batch" and query.output_mode == "append":
            self._state_hint(query)
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
            self.lines,
        )

    def _state_hint(self, query: Query) -> None:
        if query.watermark is None and re.search(r"\bgroup\s+by\b", query.sql, re.IGNORECASE):
            self.problem(
                ("query", "sql"),
                "a grouping over the stream in output mode append needs a watermark; give `watermark`, or take "
                "over = 'batch' or output_mode = 'update'",
            )

    def _source(self, section: _Section | None) -> Topics | Files | None:
        if section is None:
            self.problem((), "there is no [source]: give `topics` and `bootstrap_servers`, or `files` and `format`")
            return None
        kinds = section.exactly_one("topics", "topic_pattern", "files")
        if kinds == "files":
            form = section.choice("format", FILE_FORMATS)
            path = section.path("files")
            schema = section.text("schema", None)
            if form in ("csv", "json") and schema is None:
                section.wrong(
                    "format", f"files of {form} need a `schema` such as 'id BIGINT, name STRING': a run never guesses"
                )
            options = section.options()
            section.known()
            return Files(path, form, schema, options)
        if kinds is None:
            section.ignore()
            return None
        names = section.texts("topics") if kinds == "topics" else ()
        pattern = section.text("topic_pattern") if kinds == "topic_pattern" else None
        if kinds == "topics" and not names:
            section.wrong("topics", "`topics` names no topic")
        if pattern is not None:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                section.wrong("topic_pattern", f"{pattern!r} is no regular expression: {error}")
        bootstrap = section.text("bootstrap_servers")
        options = section.options()
        section.known()
        return Topics(bootstrap, names, pattern, options)

    def _values(self, section: _Section | None, source: Topics | Files | None) -> Values:
        if section is None:
            return Values()
        if isinstance(source, Files):
            section.wrong("", "[value] says how a record's value is read; files have `format` and `schema` instead")
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
                section.wrong("schema_file", f"{schema_file} is not UTF-8 text, so it is no schema")
        if form in ("json", "avro") and not schema:
            example = "'module STRING, line STRING'" if form == "json" else "the schema in Avro's JSON form"
            section.wrong("format", f"values of {form} need a `schema`, for example {example}")
        if form in ("raw", "text") and schema:
            section.wrong("schema", f"values of format {form} have no schema: remove it, or name another `format`")
        framing = section.flag("registry_framing", form == "json")
        section.known()
        return Values(form, schema, framing)

    def _query(self, section: _Section | None) -> Query | None:
        if section is None:
            return None
        sql = section.text("sql")
        over = section.choice("over", ("batch", "stream"), "batch")
        output_mode = section.choice("output_mode", ("append", "update", "complete"), "append")
        if over == "batch" and output_mode != "append":
            section.wrong("output_mode", f"output mode {output_mode} is for over = 'stream'")
        watermark = None
        asked = section.table("watermark")
        if asked is not None:
            watermark = (asked.text("column"), asked.text("delay"))
            asked.known()
            if not _DURATION.fullmatch(watermark[1]):
                asked.wrong("delay", f"`delay` is a time like '10 minutes', not {watermark[1]!r}")
            if over == "batch":
                section.wrong("watermark", "a watermark is for over = 'stream'")
        section.known()
        return Query(sql, cast(Literal["batch", "stream"], over), output_mode, watermark)

    def _sink(self, section: _Section | None, name: str, source: Topics | Files | None) -> Table | TopicSink | None:
        if section is None:
            if name == "sink":
                self.problem((), "there is no [sink]: give `table` or `topic`")
            return None
        kind = section.exactly_one("table", "topic")
        if kind is None:
            section.ignore()
            return None
        if kind == "table":
            form = section.choice("format", TABLE_FORMATS if name == "sink" else ("parquet",), "parquet")
            path = section.local_path("table") if form == "parquet" else section.path("table")
            partition_by = section.texts("partition_by")
            if any(item.partition("=")[0].strip().lower() == "batch_id" for item in partition_by):
                section.wrong("partition_by", "`batch_id` is the table's own first level: take another column")
            section.known()
            return Table(path, form, partition_by)
        topic = section.text("topic")
        default = source.bootstrap_servers if isinstance(source, Topics) else _MISSING
        bootstrap = section.text("bootstrap_servers", default)
        options = section.options()
        section.known()
        return TopicSink(bootstrap, topic, options)

    def _places(
        self, checkpoint: str, source: Topics | Files, sink: Table | TopicSink, letters: Table | TopicSink | None
    ) -> None:
        """No two of the directories may lie in one another: one would read or delete the other's files."""
        places = [("checkpoint", checkpoint)]
        if isinstance(source, Files):
            places.append(("source", source.path))
        places += [
            (name, table.path)
            for name, table in (("sink", sink), ("dead_letters", letters))
            if isinstance(table, Table)
        ]
        for index, (name, place) in enumerate(places):
            for other_name, other in places[:index]:
                if "://" in place or "://" in other or not place or not other:
                    continue
                one, two = Path(place), Path(other)
                if one == two or one in two.parents or two in one.parents:
                    self.problem((name,), f"{place} and {other} ({other_name}) lie in one another: separate them")


class _Section:
    """One table of the file. Every key that is asked for counts as known; `known()` reports the others."""

    def __init__(self, reader: _Reader, path: tuple[str, ...], values: Mapping[str, Any]) -> None:
        self.reader = reader
        self.path_of_table = path
        self.values = values
        self.asked: set[str] = set()

    def wrong(self, key: str, sentence: str) -> None:
        self.reader.problem((*self.path_of_table, key) if key else self.path_of_table, sentence)

    def ignore(self) -> None:
        """Nothing more is said about this table: its first problem makes the rest guesswork."""

    def known(self, *others: str) -> None:
        names = sorted({*self.asked, *others})
        for key in self.values:
            if key not in names:
                close = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"known here: {', '.join(names)}"
                self.wrong(key, f"`{key}` means nothing here; {hint}")

    def _take(self, key: str, default: Any, fits: Callable[[Any], bool], kind: str, stand_in: Any) -> Any:
        self.asked.add(key)
        value = self.values.get(key, _MISSING)
        if value is _MISSING:
            if default is _MISSING:
                place = f"[{'.'.join(self.path_of_table)}]" if self.path_of_table else "the file"
                self.wrong(key, f"{place} lacks `{key}`")
                return stand_in
            return default
        if not fits(value):
            self.wrong(key, f"`{key}` is {kind}, not {value!r}")
            return stand_in
        return value

    def text(self, key: str, default: Any = _MISSING) -> Any:
        value = self._take(key, default, lambda v: isinstance(v, str) and bool(v), "a text", "")
        return self.from_environment(key, value) if isinstance(value, str) else value

    def from_environment(self, key: str, value: str) -> str:
        """A text that is only `${NAME}` or `${NAME:-default}` comes from the environment: no password need stand in
        the file, and one file serves several clusters."""
        variable = _FROM_ENVIRONMENT.fullmatch(value)
        if variable is None:
            return value
        name, default = variable["name"], variable["default"]
        if name not in os.environ and default is None:
            self.wrong(key, f"{value} is taken from the environment, where {name} is not set: export it first")
        return os.environ.get(name) or default or ""

    def path(self, key: str, default: Any = _MISSING) -> Any:
        value = self.text(key, default)
        return value and self.absolute(key, value)

    def absolute(self, key: str, value: str) -> str:
        if not value or "://" in value:
            return value
        try:
            return str((self.reader.folder / Path(value).expanduser()).resolve())
        except (ValueError, RuntimeError) as error:
            # a zero byte; the home of a user who is not there; a link to itself
            self.wrong(key, f"{value!r} is no path: {error}")
            return ""

    def local_path(self, key: str) -> str:
        """A place on a file system that this process can rename on. Another's would become a folder `s3:` here."""
        value = str(self.path(key))
        if "://" in value:
            self.wrong(key, f"`{key}` is a directory that this machine sees, not {value}: give a path")
            return ""
        return value

    def flag(self, key: str, default: bool) -> bool:
        return bool(self._take(key, default, lambda v: isinstance(v, bool), "true or false", False))

    def choice(self, key: str, choices: tuple[str, ...], default: Any = _MISSING) -> str:
        return str(self._take(key, default, lambda v: v in choices, f"one of {', '.join(choices)}", choices[0]))

    def texts(self, key: str) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) and item for item in value)

        return tuple(self._take(key, [], fits, "a list of texts", []))

    def table(self, key: str) -> _Section | None:
        found = self._take(key, None, lambda v: isinstance(v, dict), "a table", None)
        return None if found is None else _Section(self.reader, (*self.path_of_table, key), found)

    def options(self) -> dict[str, str]:
        """Spark's options are texts; numbers and truth values are written as Spark writes them."""
        options = {}
        section = self.table("options")
        for key, value in (section.values if section else {}).items():
            if isinstance(value, bool):
                options[key] = str(value).lower()
            elif isinstance(value, str | int | float):
                text = self.from_environment("options", str(value))
                places = key.lower() == "quarantinepath" or key.lower().endswith(".location")
                options[key] = section.absolute(key, text) if section and places else text
            elif isinstance(value, dict):
                self.wrong("options", f'quote the name of the option: "{key}.{next(iter(value), "")}" = …')
            else:
                self.wrong("options", f"the option `{key}` is a text, a number or true or false, not {value!r}")
        return options

    def exactly_one(self, *keys: str) -> str | None:
        self.asked.update(keys)
        found = [key for key in keys if key in self.values]
        if len(found) == 1:
            return found[0]
        listed = " or ".join(f"`{key}`" for key in keys)
        name = ".".join(self.path_of_table)
        self.wrong(found[1] if found else "", f"[{name}] needs one of {listed}" + (", not several" if found else ""))
        return None
