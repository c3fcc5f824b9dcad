"""What a pipeline file says, as values.

    name, mode, checkpoint, every         the run
    [source]       topics | topic_pattern (+ bootstrap_servers), or files (+ format, schema); options
    [value]        format = raw | text | json | avro, schema, registry_framing          (topics only)
                   registry (+ subject): Avro values of any schema in a registry
    [value.NAME]   the same and `topics`: topics with different values
    [query]        sql over the view `input`; over = batch | stream, output_mode, watermark
    [sink]         table (+ format, partition_by), or topic (+ bootstrap_servers); options
    [dead_letters] table or topic, for rows that do not parse

load.py reads them from a file. Names of the options of topics are in lower case here, however the file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from heirlog.spark.schemas.registry import Registry

_REJECTED = ".rejected"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a pipeline file, and what to do about it."""

    line: int
    sentence: str


class PipelineError(Exception):
    """A pipeline that cannot run: its file is wrong (`problems` has the lines), or does not fit what exists."""

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

    @property
    def spark_options(self) -> dict[str, str]:
        """All options of the format `heirlog`."""
        subscription = (
            {"subscribe": ",".join(self.names)} if self.pattern is None else {"subscribepattern": self.pattern}
        )
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **subscription, **self.options}


@dataclass(frozen=True, slots=True)
class Files:
    """A source of rows: the files in a directory."""

    path: str
    format: str
    schema: str | None
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Values:
    """How the value of a record becomes columns.

    registry: has the schemas that wrote the values; `schema` is then the reader's. subject: the newest schema of this
    subject when a batch begins is the reader's. kinds: the values of topics by a name, each with its `topics`.
    """

    format: str = "raw"
    schema: str | None = None
    registry_framing: bool = False
    registry: Registry | None = None
    subject: str | None = None
    topics: tuple[str, ...] = ()
    kinds: Mapping[str, Values] = field(default_factory=dict)

    @property
    def meaning(self) -> dict[str, Any]:
        """What determines the columns, as JSON: not the address of the registry, and not its login."""
        found: dict[str, Any] = {
            "format": self.format,
            "schema": self.schema,
            "registry_framing": self.registry_framing,
        }
        if self.registry is not None:
            found["subject"] = self.subject
        if self.topics:
            found["topics"] = list(self.topics)
        if self.kinds:
            found["kinds"] = {name: kind.meaning for name, kind in self.kinds.items()}
        return found

    @property
    def subjects(self) -> dict[str, tuple[Registry, str]]:
        """Where the newest schemas come from, by the name of the kind ("" without kinds)."""
        found = {name: subject for name, kind in self.kinds.items() for subject in kind.subjects.values()}
        if self.registry is not None and self.subject is not None:
            found[""] = (self.registry, self.subject)
        return found


@dataclass(frozen=True, slots=True)
class Query:
    """SQL over the view `input`: on each batch separately, or on the stream, with Spark's state."""

    sql: str
    over: Literal["batch", "stream"] = "batch"
    output_mode: str = "append"
    watermark: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    path: str
    """Of Iceberg the name in its catalog."""
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicSink:
    bootstrap_servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def spark_options(self) -> dict[str, str]:
        """All options of the format `heirlog`."""
        return {"kafka.bootstrap.servers": self.bootstrap_servers, "topic": self.topic, **self.options}

    def batch_options(self, transactional_id: str, batch: str) -> dict[str, str]:
        """The options for one batch: exactly once, unless the options of the file exclude that.

        transactional_id: used if the file names none. batch: the name of the batch, the same in each of its runs.
        """
        given = self.spark_options
        weaker = given.get("kafka.acks", "all").strip().lower() not in ("all", "-1")
        weaker = weaker or given.get("kafka.enable.idempotence", "true").strip().lower() == "false"
        if given.get("exactlyonce", "false" if weaker else "true").strip().lower() == "false":
            return given
        return {"kafka.transactional.id": transactional_id, "exactlyonce": "true", **given, "batchid": batch}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline file without problems of its own; `check` finds out whether it fits what exists."""

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

    @property
    def parts(self) -> list[Pipeline]:
        """The queries that a pipeline becomes: one, or two where SQL runs over the stream and rejected rows are kept.

        Such a stream has only one output, so a second query with a checkpoint of its own reads the rejected rows.
        """
        query, letters = self.query, self.dead_letters
        if query is None or query.over == "batch" or letters is None:
            return [self]
        main = replace(self, dead_letters=None)
        checkpoint = f"{self.checkpoint}{_REJECTED}"
        return [main, replace(main, name=f"{self.name}{_REJECTED}", checkpoint=checkpoint, query=None, sink=letters)]
