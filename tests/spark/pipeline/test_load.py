"""What a pipeline file means, and that every mistake is found with its line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heirlog.spark.option_values import kafka_properties
from heirlog.spark.pipeline.load import load, parse
from heirlog.spark.pipeline.spec import Files, PipelineError, Query, Table, Topics, TopicSink
from heirlog.spark.pipeline.toml_lines import line_of_each_key
from heirlog.spark.schemas import Registry

LAKE = """\
name = "lake"
checkpoint = "state/lake"

[source]
bootstrap_servers = "127.0.0.1:9092"
topics = ["lines"]
options = { maxOffsetsPerTrigger = 1000, includeHeaders = true }

[value]
format = "json"
schema = "module STRING, line STRING"

[query]
sql = '''
SELECT value.module FROM input
'''

[sink]
table = "lake"
partition_by = ["day = to_date(timestamp)"]

[dead_letters]
topic = "refused"
"""


def problems(text: str) -> list[tuple[int, str]]:
    with pytest.raises(PipelineError) as caught:
        parse(text, Path("/x/p.toml"))
    return [(problem.line, problem.sentence) for problem in caught.value.problems]


def test_a_file_is_read_with_its_defaults() -> None:
    pipeline = parse(LAKE, Path("/home/p/p.toml"))
    assert (pipeline.name, pipeline.mode, pipeline.checkpoint) == ("lake", "batch", "/home/p/state/lake")
    options = {"maxoffsetspertrigger": "1000", "includeheaders": "true"}
    assert pipeline.source == Topics("127.0.0.1:9092", ("lines",), None, options)
    assert pipeline.values.registry_framing
    assert pipeline.query == Query("SELECT value.module FROM input\n")
    assert pipeline.sink == Table("/home/p/lake", "parquet", ("day = to_date(timestamp)",))
    assert pipeline.dead_letters == TopicSink("127.0.0.1:9092", "refused", {})


def test_lines_are_known_for_tables_keys_and_what_is_missing() -> None:
    pipeline = parse(LAKE, Path("/p.toml"))
    assert pipeline.line_of("source", "topics") == 6
    assert pipeline.line_of("query", "sql") == 14
    assert pipeline.line_of("value", "no such key") == 9
    assert pipeline.line_of("no such table") == 1


def test_all_mistakes_are_reported_at_once_in_the_order_of_their_lines() -> None:
    text = LAKE.replace('format = "json"', 'format = "xml"').replace("partition_by", "partitoned_by")
    assert problems(text) == [
        (10, "`format` is one of raw, text, json, avro, not 'xml'"),
        (11, "values of format raw have no schema: remove it, or name another `format`"),
        (20, "`partitoned_by` is unknown; did you mean `partition_by`?"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ('name = "lake"', 'name = "a b"', 1, "letters, digits"),
        ('name = "lake"', "", 1, "lacks `name`"),
        ('checkpoint = "state/lake"', "checkpoint = 7", 2, "`checkpoint` is a text, not 7"),
        ('topics = ["lines"]', 'topics = "lines"', 6, "a list of texts"),
        ('topics = ["lines"]', "topics = []", 6, "names no topic"),
        ('topics = ["lines"]', 'topic_pattern = "("', 6, "not a regular expression"),
        ('topics = ["lines"]', "", 4, "needs one of `topics` or `topic_pattern` or `files`"),
        ('topics = ["lines"]', 'topics = ["a"]\ntopic_pattern = "b"', 7, "not several"),
        ('schema = "module STRING, line STRING"', "", 10, "need a `schema`"),
        ('table = "lake"', 'table = "state"', 18, "contain each other"),
        ('topic = "refused"', "", 22, "needs one of `table` or `topic`"),
        ("sql = '''", "over = 'batch'\noutput_mode = 'update'\nsql = '''", 15, "over = 'stream'"),
        ("sql = '''", "watermark = { column = 'timestamp', delay = 'soon' }\nsql = '''", 14, "10 minutes"),
        ("[sink]", "[sinks]", 1, "there is no [sink]"),
        ("SELECT value.module FROM input", "-- all\nDROP TABLE t", 14, "not with DROP"),
        ("SELECT value.module FROM input", "/* SELECT */", 14, "begins with SELECT"),
        ("maxOffsetsPerTrigger = 1000", 'x = "${HEIRLOG_NOT_SET}"', 7, "HEIRLOG_NOT_SET is not set"),
        ("maxOffsetsPerTrigger = 1000", "includeheaders = false", 7, "given twice"),
        ("maxOffsetsPerTrigger", "maxOffsetPerTrigger", 7, "did you mean `maxOffsetsPerTrigger`?"),
        ("maxOffsetsPerTrigger = 1000", 'subscribe = "other"', 7, "`subscribe` is already set by `topics`"),
        ("maxOffsetsPerTrigger = 1000", '"Kafka.Bootstrap.Servers" = "h:1"', 7, "already set by `bootstrap_servers`"),
        ('topic = "refused"', 'topic = "lines"', 23, "would read what it writes to lines"),
        ('"day = to_date(timestamp)"', '"day", "DAY = 1"', 20, "a column that no other item has"),
        ('"day = to_date(timestamp)"', '"= to_date(timestamp)"', 20, "a column that no other item has"),
        ("maxOffsetsPerTrigger = 1000", "kafka.acks = 1", 7, "quote the name of the option"),
        ('checkpoint = "state/lake"', 'checkpoint = "s3://b/c"', 2, "must be a directory on this machine"),
        ('table = "lake"', 'table = "s3://b/t"', 19, "must be a directory on this machine"),
        ('checkpoint = "state/lake"', 'checkpoint = "a\\u0000b"', 2, "is not a path"),
        ('checkpoint = "state/lake"', 'checkpoint = "~no such user/b"', 2, "is not a path"),
        ('topics = ["lines"]', 'topic_pattern = "a{99999999999}"', 6, "not a regular expression"),
        ('"day = to_date(timestamp)"', '"batch_id = to_date(timestamp)"', 20, "choose another column"),
        ('table = "lake"', 'table = "./lake"\nformat = "iceberg"', 19, "catalog.namespace.table"),
        ('topics = ["lines"]', 'topicz = ["lines"]', 6, "did you mean `topics`?"),
        ('topics = ["lines"]', 'topics = ["lines,more"]', 6, "each topic as a separate string"),
        ('topic = "refused"', 'topicc = "refused"', 23, "did you mean `topic`?"),
        ('schema = "module STRING, line STRING"', 'schema = " "', 11, "a text, not ' '"),
        ('"day = to_date(timestamp)"', '"_day = to_date(timestamp)"', 20, "ignore names that begin with '_'"),
        ("SELECT value.module FROM input", "WITH a AS (SELECT 1) INSERT INTO t FROM a", 14, "would INSERT INTO"),
        ("SELECT value.module FROM input", "FROM input insert overwrite t SELECT 1", 14, "would insert overwrite"),
        ("SELECT value.module FROM input", "WITH a AS (TABLE b) DELETE FROM t", 14, "would DELETE FROM"),
        ("maxOffsetsPerTrigger = 1000", f"x = {'9' * 5000}", 1, "cannot be read"),
        ("maxOffsetsPerTrigger = 1000", f"x = {'[' * 5000}", 1, "cannot be read"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, part: str) -> None:
    assert old in LAKE
    found = problems(LAKE.replace(old, new))
    assert any(at == line and part in sentence for at, sentence in found), found


JSON = 'format = "json"\nschema = "module STRING, line STRING"'
AVRO = 'format = "avro"\nregistry = "http://r:1"\n'


@pytest.mark.parametrize(
    ("value", "line", "part"),
    [
        ('format = "avro"\nsubject = "s"', 11, "for values of avro with a `registry`"),
        (f'{JSON}\nregistry = "http://r:1"', 12, "a `registry` is for values of avro"),
        (f'{AVRO}subject = "s"\nschema = "{{}}"', 12, "a `schema` and a `subject`"),
        (AVRO, 10, "values of avro need a `schema`"),
        ('format = "avro"\nregistry = "r:1"\nsubject = "s"', 11, "like http://host:8081"),
        (
            'format = "avro"\nregistry = { user = "u" }\nsubject = "s"',
            11,
            "`user` is unknown; did you mean `username`?",
        ),
        (f"[value.a]\n{JSON}", 10, "[value.a] lacks `topics`"),
        (f'[value.a]\ntopics = ["other"]\n{JSON}', 11, "other is not one of those in [source]"),
        (
            f'[value.a]\ntopics = ["lines"]\n{JSON}\n[value.b]\ntopics = ["lines"]\nformat = "raw"',
            15,
            "has its values in [value.a] already",
        ),
        (f'format = "raw"\n[value.a]\ntopics = ["lines"]\n{JSON}', 10, "`format` is unknown"),
    ],
)
def test_a_mistake_about_schemas_is_named_with_its_line(value: str, line: int, part: str) -> None:
    found = problems(LAKE.replace(JSON, value))
    assert any(at == line and part in sentence for at, sentence in found), found


def test_a_registry_s_login_comes_from_the_environment_and_kinds_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "hidden")
    registry = 'registry = { url = "http://r:1", username = "u", password = "${REGISTRY_PASSWORD}" }'
    kinds = f'{registry}\n[value.line]\ntopics = ["lines"]\nformat = "avro"\nsubject = "s"'
    values = parse(LAKE.replace(JSON, kinds), Path("/p.toml")).values
    assert values.subjects == {"line": (Registry("http://r:1", "u", "hidden"), "s")}
    ((_, sentence),) = problems(LAKE.replace(JSON, kinds).replace("sql = '''", "over = 'stream'\nsql = '''"))
    assert sentence.startswith("a query over the stream keeps its columns")


def test_what_is_not_toml_is_refused_with_its_line() -> None:
    ((line, sentence),) = problems('name = "x"\nname = \n')
    assert line == 2 and sentence.startswith("this is not valid TOML")


def test_a_secret_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_LOGIN", "hidden")
    pipeline = parse(LAKE.replace("maxOffsetsPerTrigger = 1000", 'commitGroup = "${BROKER_LOGIN}"'), Path("/p.toml"))
    assert isinstance(pipeline.source, Topics) and pipeline.source.options["commitgroup"] == "hidden"


def test_how_the_names_of_kafkas_properties_are_written_does_not_matter() -> None:
    options = '"Kafka.Security.Protocol" = "SSL", "KAFKA.ssl.keystore.type" = "PEM"'
    source = parse(LAKE.replace("maxOffsetsPerTrigger = 1000", options), Path("/p.toml")).source
    assert isinstance(source, Topics)
    properties = kafka_properties(source.spark_options)
    assert properties == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
    }


def test_a_text_from_the_environment_may_have_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LAKE.replace('"127.0.0.1:9092"', '"${BOOTSTRAP:-here:9092}"')
    pipeline = parse(text, Path("/p.toml"))
    assert isinstance(pipeline.source, Topics) and pipeline.source.bootstrap_servers == "here:9092"
    monkeypatch.setenv("BOOTSTRAP", "there:9092")
    pipeline = parse(text, Path("/p.toml"))
    assert isinstance(pipeline.source, Topics) and pipeline.source.bootstrap_servers == "there:9092"


def test_files_of_csv_and_json_need_a_schema_and_others_do_not() -> None:
    text = 'name = "n"\ncheckpoint = "c"\n[source]\nfiles = "in"\nformat = "csv"\n[sink]\ntable = "t"\n'
    assert problems(text)[0][0] == 5
    pipeline = parse(text.replace('"csv"', '"text"'), Path("/d/p.toml"))
    assert pipeline.source == Files("/d/in", "text", None, {})


def test_a_sink_topic_has_no_default_brokers_where_the_source_is_files() -> None:
    text = 'name = "n"\ncheckpoint = "c"\n[source]\nfiles = "in"\nformat = "text"\n[sink]\ntopic = "t"\n'
    assert problems(text) == [(6, "[sink] lacks `bootstrap_servers`")]


def test_a_grouping_over_a_stream_needs_a_watermark_to_append() -> None:
    text = LAKE.replace("sql = '''\nSELECT", "over = 'stream'\nsql = '''\nSELECT").replace(
        "FROM input", "FROM input GROUP BY 1"
    )
    assert [line for line, _ in problems(text)] == [15]


def test_places_in_options_are_relative_to_the_file_too() -> None:
    options = 'quarantinePath = "lost", "kafka.ssl.truststore.location" = "/etc/ca.pem", columns = "lost"'
    pipeline = parse(LAKE.replace("maxOffsetsPerTrigger = 1000", options), Path("/home/p/p.toml"))
    assert isinstance(pipeline.source, Topics)
    assert pipeline.source.options["quarantinepath"] == "/home/p/lost"
    assert pipeline.source.options["kafka.ssl.truststore.location"] == "/etc/ca.pem"
    assert pipeline.source.options["columns"] == "lost"


def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(LAKE, encoding="utf-8-sig")
    assert load(tmp_path / "p.toml").name == "lake"


def test_a_schema_file_that_is_no_text_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "schema").write_bytes(b"\xff\xfe")
    text = LAKE.replace('schema = "module STRING, line STRING"', 'schema_file = "schema"')
    with pytest.raises(PipelineError) as caught:
        parse(text, tmp_path / "p.toml")
    assert any("is not UTF-8 text" in problem.sentence for problem in caught.value.problems)


@given(st.integers(0, 21), st.text(max_size=30))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_in_a_file_it_is_read_or_refused(at: int, typed: str) -> None:
    lines = LAKE.splitlines()
    lines.insert(at, typed)
    lines[at - 1] += typed
    with suppress(PipelineError):
        parse("\n".join(lines), Path("/x/p.toml"))


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="cannot read the pipeline file"):
        load(tmp_path / "absent.toml")


def test_headers_inside_texts_and_arrays_are_no_headers() -> None:
    text = 'a = """\n[not]\nx = 1\n"""\nb = [\n  [1],\n]\n[real]\n"quoted key" = "\\"["\nc.d = 2\n'
    assert line_of_each_key(text) == {
        ("a",): 1,
        ("b",): 5,
        ("real",): 8,
        ("real", "quoted key"): 9,
        ("real", "c", "d"): 10,
    }


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "-- a\n/* b\n */ ( WITH x AS (SELECT 1) SELECT * FROM x )",
        "from input select 1",
        """WITH "insert into" AS (SELECT 'delete from' AS `merge into`) FROM x -- insert into""",
    ],
)
def test_a_query_may_begin_with_a_comment_and_in_any_case(sql: str) -> None:
    pipeline = parse(LAKE.replace("SELECT value.module FROM input", sql), Path("/p.toml"))
    assert pipeline.query is not None and sql in pipeline.query.sql
