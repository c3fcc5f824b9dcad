"""What can be said of a batch without Spark: what decides its rows, and how its failure is told."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException, StreamingQueryException

from heirlog.spark.pipeline.batch import BatchBody, meaning
from heirlog.spark.pipeline.load import parse
from heirlog.spark.pipeline.run import sentence_of, start_spark
from heirlog.spark.pipeline.spec import PipelineError

TOPICS = """\
name = "p"
checkpoint = "cp"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["t"]
options = { "kafka.sasl.jaas.config" = "hidden", INCLUDEHEADERS = true, Columns = "value" }
[sink]
table = "out"
"""
FILES = """\
name = "p"
checkpoint = "cp"
[source]
files = "in"
format = "csv"
schema = "a INT"
options = { sep = ";", "fs.s3a.secret.key" = "hidden", "fs.azure.account.key.x" = "hidden", "x.access.key" = "hidden" }
[sink]
table = "out"
"""


def test_options_that_decide_the_rows_are_part_of_what_a_table_remembers_and_secrets_are_not() -> None:
    topics = meaning(parse(TOPICS, Path("/p.toml")))
    assert topics["source"] == {"topics": ["t"], "pattern": None, "headers": "true", "columns": "value"}
    files = meaning(parse(FILES, Path("/p.toml")))
    assert files["source"]["sep"] == ";" and "hidden" not in json.dumps([topics, files])


def test_a_table_is_not_claimed_for_a_checkpoint_that_this_process_does_not_see(tmp_path: Path) -> None:
    body = BatchBody(parse(TOPICS, tmp_path / "p.toml"))
    with pytest.raises(PipelineError, match=r"keeps no checkpoint in .*cp that this process sees"):
        body(None, 0)  # type: ignore[arg-type]  # refused before it looks at the rows
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "cause",
    [
        "heirlog.spark.loss.DataLoss: Some data may have been lost: t-0: gone",
        "heirlog.spark.encode.Unencodable: Some data may have been lost: t-0: gone",
        "ValueError: Some data may have been lost: t-0: gone",
    ],
)
def test_of_a_failure_between_two_languages_the_cause_is_told(cause: str) -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] "
        "Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):\n"
        f'  File "x.py", line 1, in y\n    raise z\n{cause}\n\n=== Streaming Query ===\njava.lang.Exception: plan'
    )
    assert sentence_of(StreamingQueryException(text)) == "Some data may have been lost: t-0: gone"


@pytest.mark.parametrize("named", ["", "py4j.protocol.Py4JJavaError: "])
def test_of_a_failure_in_java_alone_its_error_is_told(named: str) -> None:
    missing = "java.lang.NoSuchMethodError: 'void org.apache.Table.name()'"
    text = f"{named}An error occurred while calling o236.tableExists.\n: {missing}\n\tat org.x(y.scala)\nCaused by: z\n"
    assert sentence_of(StreamingQueryException(text)) == missing


@pytest.mark.parametrize(
    ("master", "said"), [("localhost", "not 'localhost'"), ("sc://127.0.0.1:1", "refused"), ("sc://h:port", "Port")]
)
def test_a_master_that_cannot_be_is_refused_before_spark_waits_for_it(
    master: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with pytest.raises(PipelineError, match=said):
        start_spark(master, None, "test")


def test_of_a_task_that_failed_the_reason_is_told() -> None:
    text = (
        "An error occurred while calling o9.x.\n: org.apache.spark.SparkException: [TASK_WRITE_FAILED] It failed\n"
        "\tat org.x(y.scala)\nCaused by: org.x.Failed: t\nCaused by: java.io.IOException: No space left on device\n"
    )
    assert sentence_of(StreamingQueryException(text)).endswith("failed java.io.IOException: No space left on device")


def test_what_sparks_parser_says_stands_below_its_name() -> None:
    said = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'IF'. (line 1, pos 2)"
    text = f"[STREAM_FAILED] Query\npyspark.errors.exceptions.captured.ParseException: \n{said}\n\n== SQL ==\nIF"
    assert sentence_of(StreamingQueryException(text)) == said


def test_what_a_query_over_a_stream_refuses_is_the_sentence_that_names_the_row() -> None:
    raised = (
        "Job aborted due to stage failure: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] "
        "PipelineError: a row does not parse (topic orders, partition 1, offset 2): why; what to do SQLSTATE: P0001\n"
        "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.raiseError(QueryExecutionErrors.scala:2987)\n"
    )
    received = sentence_of(PySparkException(raised))
    assert received == "a row does not parse (topic orders, partition 1, offset 2): why; what to do"


def test_an_error_of_a_java_that_has_ended_since_is_a_sentence() -> None:
    """Py4J asks Java for an error's text when it is printed: after SIGTERM to the group of both, too late."""

    def ended(_: str) -> str:
        raise Py4JNetworkError("Answer from Java side is empty")

    java = SimpleNamespace(_target_id="o1", _gateway_client=SimpleNamespace(send_command=ended))
    told = sentence_of(Py4JJavaError("An error occurred while calling o1.stop", java))
    assert told.startswith("Spark's Java process ended")
