"""Options by themselves: what they mean, and what is refused as Spark's Kafka source refuses it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from spark.given_options import MINIMAL, SERVERS, batch, stream

from heirlog.spark.columns import COLUMNS, PLAIN_COLUMNS
from heirlog.spark.offset_limits import EARLIEST, LATEST
from heirlog.spark.option_names import CLIENT_PROPERTIES, SINK_OPTIONS, SOURCE_OPTIONS, STRATEGIES, warn_of_ineffective
from heirlog.spark.option_values import OptionError
from heirlog.spark.options import OnDataLoss, columns_of, read_options
from heirlog.spark.sink_options import sink_options
from heirlog.spark.source import HeirlogDataSource


def test_names_of_options_are_read_in_any_case() -> None:
    options = read_options(
        {"KAFKA.BootStrap.Servers": "h:1", "SUBSCRIBE": "b, a ,b", "MinPartitions": "3"}, streaming=False
    )
    assert (options.bootstrap, options.topics, options.min_partitions) == ("h:1", ("a", "b"), 3)


def test_a_batch_reads_from_the_earliest_to_the_latest_and_a_stream_from_the_latest() -> None:
    assert (batch().starting.offset, batch().ending.offset, stream().starting.offset) == (EARLIEST, LATEST, LATEST)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "one of the following options must be specified: subscribe, subscribePattern, assign"),
        ({"subscribe": "t", "assign": '{"t":[0]}'}, "only one of the following options"),
        ({"subscribe": " , "}, "no topics to subscribe to"),
        ({"subscribePattern": " "}, "'subscribePattern' is empty"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"assign": "t"}, "'assign' must be JSON"),
        ({"assign": '{"t":0}'}, "'assign' must be JSON"),
        ({"assign": '{"t":[-1]}'}, "'assign' must be JSON"),
        ({"subscribe": "t", "minPartitions": "0"}, "minPartitions must be positive"),
        ({"subscribe": "t", "maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be positive"),
        ({"subscribe": "t", "minPartitions": "x"}, "minPartitions is 'x'"),
        ({"subscribe": "t", "startingOffsets": "soon"}, "startingOffsets must be earliest, latest or JSON"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":"x"}}'}, "startingOffsets must be earliest"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":-3}}'}, "startingOffsets: -3 for t-0"),
        ({"subscribe": "t", "startingOffsets": ""}, "startingOffsets must be earliest"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":9223372036854775808}}'}, "startingOffsets must be earliest"),
        ({"subscribe": "t", "startingTimestamp": "9223372036854775808"}, "from -2 to 9223372036854775807"),
        ({"subscribe": "t", "startingTimestamp": "9" * 5000}, "from -2 to 9223372036854775807"),
        ({"subscribe": "t", "minPartitions": "2147483648"}, "from 0 to 2147483647"),
        ({"subscribe": "t", "startingOffsetsByTimestamp": '{"t":{"0":-3}}'}, "-3 for t-0 is not a timestamp"),
        ({"subscribe": "t", "startingTimestamp": "noon"}, "startingTimestamp is 'noon'"),
        ({"subscribe": "t", "startingOffsetsByTimestampStrategy": "guess"}, "it can be error or latest"),
        ({"subscribe": "t", "columns": "value,nope"}, "no column 'nope'"),
        ({"subscribe": "t", "columns": "value,value"}, "each wanted column once"),
        ({"subscribe": "t", "includeHeaders": "yes"}, "includeHeaders is 'yes'"),
        ({"subscribe": "t", "onDataLoss": "cry"}, "fail, skip or quarantine"),
        ({"subscribe": "t", "onDataLoss": "quarantine"}, "needs quarantinePath"),
        ({"subscribe": "t", "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "less than or equal to"),
        ({"subscribe": "t", "minPartitions": " 7"}, "minPartitions is ' 7'"),
        ({"subscribe": "t", "failOnDataLoss": " true"}, "failOnDataLoss is ' true'"),
        ({"subscribePattern": "[a-z&&[^b]]"}, "a character class in a character class"),
        ({"subscribe": "t", "kafka.isolation.level": "READ"}, "kafka.isolation.level is 'READ'"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "latest"}, "'auto.offset.reset' is not supported"),
        ({"subscribe": "t", "kafka.key.deserializer": "x"}, "'key.deserializer' is not supported"),
        ({"subscribe": "t", "kafka.value.deserializer": "x"}, "'value.deserializer' is not supported"),
        ({"subscribe": "t", "kafka.enable.auto.commit": "true"}, "'enable.auto.commit' is not supported"),
        ({"subscribe": "t", "kafka.interceptor.classes": "x"}, "'interceptor.classes' is not supported"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_what_spark_s_source_refuses_is_refused(options: dict[str, str], why: str, streaming: bool) -> None:
    with pytest.raises(OptionError, match=why):
        read_options({**SERVERS, **options}, streaming=streaming)


def test_servers_must_be_named() -> None:
    with pytest.raises(OptionError, match=r"'kafka.bootstrap.servers' must be specified"):
        read_options({"subscribe": "t"}, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    value = {"endingOffsets": "latest", "endingOffsetsByTimestamp": '{"t":{"0":1}}', "endingTimestamp": "1"}[name]
    with pytest.raises(OptionError, match=f"{name} is not valid in streaming queries"):
        stream(**{name: value})


def test_before_it_is_known_what_is_read_only_what_neither_allows_is_refused() -> None:
    assert columns_of({**MINIMAL, "startingOffsets": "latest"}) == PLAIN_COLUMNS
    assert columns_of({**MINIMAL, "endingTimestamp": "5"}) == PLAIN_COLUMNS
    with pytest.raises(OptionError, match=r"ending offset can't be earliest"):
        columns_of({**MINIMAL, "endingOffsets": "earliest"})
    with pytest.raises(OptionError, match="minPartitions must be positive"):
        columns_of({**MINIMAL, "startingOffsets": "latest", "minPartitions": "0"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxTriggerDelay", "a while"),
        ("maxTriggerDelay", "2 hours"),
        ("maxOffsetsPerTrigger", "0"),
        ("minOffsetsPerTrigger", "x"),
    ],
)
def test_what_only_streams_read_is_looked_at_in_streams(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"{name} (must be|is '{value}')"):
        stream(**{name: value})
    assert batch(**{name: value}).max_offsets is None


def test_columns_are_those_of_spark_and_headers_only_when_asked_for() -> None:
    assert batch().columns == PLAIN_COLUMNS
    assert batch(includeHeaders="true").columns == COLUMNS
    assert batch(columns="OFFSET, value").columns == ("offset", "value")


def test_both_words_for_data_loss_are_understood_and_ours_wins() -> None:
    assert batch().on_data_loss is OnDataLoss.FAIL
    assert batch(failOnDataLoss="false").on_data_loss is OnDataLoss.SKIP
    assert batch(failOnDataLoss="false", onDataLoss="fail").on_data_loss is OnDataLoss.FAIL
    assert batch(onDataLoss="quarantine", quarantinePath="/q").quarantine_path == "/q"


def test_secrets_are_in_no_text_of_the_options() -> None:
    secret = {"kafka.sasl.jaas.config": "hidden", "kafka.ssl.key.password": "hidden"}
    for options in (batch(**secret), sink_options({**MINIMAL, **secret})):
        assert "hidden" not in repr(options)
        assert pickle.loads(pickle.dumps(options)) == options


# names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("MAXOFFSETPERTRIGGER", "maxOffsetsPerTrigger"),
        ("max_bytes_per_partition", "maxBytesPerPartition"),
        ("topics", "topic"),
        ("exactly_once", "exactlyOnce"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("Kafka.Isolation.Levl", "kafka.isolation.level"),
        ("security.protocol", "kafka.security.protocol"),
    ],
)
def test_a_misspelled_option_is_refused_with_the_one_that_is_meant(name: str, meant: str) -> None:
    sentence = f"the option '{name}' is unknown: did you mean {meant}?"
    for read in (batch, stream):
        with pytest.raises(OptionError, match=re.escape(sentence)):
            read(**{name: "x"})
    with pytest.raises(OptionError, match=re.escape(sentence)):
        sink_options({**SERVERS, "topic": "t", name: "x"})


def test_options_that_programs_share_and_properties_without_effect_are_ignored_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spark passes its own on; a program gives its source and its sink the same; Kafka's client has many properties."""
    shared = {"path": "x", "checkpointLocation": "x", "queryName": "q", "kafka.fetch.min.bytes": "1"}
    of_others = [
        "kafka.sasl.oauthbearer.jwks.endpoint.url",
        "kafka.sasl.server.callback.handler.class",
        "kafka.transaction.max.timeout.ms",
        "kafka.ssl.key.location",
        "kafka.ssl.providers",
    ]
    both = {**MINIMAL, **shared, "topic": "t", "batchId": "1", **dict.fromkeys(of_others, "x")}
    read_options(both, streaming=False)
    sink_options({**MINIMAL, **shared, "topic": "t", "startingOffsets": "latest"})
    warn_of_ineffective(both)
    assert not caplog.records


def test_an_option_of_another_format_has_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    batch(maxFilesPerTrigger="3", mergeSchema="true")
    source = HeirlogDataSource({**MINIMAL, "maxFilesPerTrigger": "3", "mergeSchema": "true"})
    for _ in range(2):
        source.reader(source.schema())
    assert [record.getMessage() for record in caplog.records] == [
        "the option 'maxfilespertrigger' has no effect on the format heirlog; did you mean maxOffsetsPerTrigger?",
        "the option 'mergeschema' has no effect on the format heirlog",
    ]


def test_every_option_in_the_documentation_is_known() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/spark.md").read_text(encoding="utf-8")
    parts = (("## Options of the source", "## Read less"), ("## Options of the sink", "## TLS and passwords"))
    tables = "".join(page[page.index(begin) : page.index(end)] for begin, end in parts)
    rows = re.findall(r"^\| (`.*?)(?: \(Spark configuration\))? \|", tables, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)} - {"kafka.group.id"}
    assert len(named) > 40
    for name in named:
        own = name.removeprefix("kafka.")
        assert own in CLIENT_PROPERTIES if own != name else name in {*STRATEGIES, *SOURCE_OPTIONS, *SINK_OPTIONS}, name
