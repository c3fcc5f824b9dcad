"""Options by themselves: what they mean, and what is refused as Spark's Kafka source refuses it."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from heirlog.spark.columns import COLUMNS, PLAIN_COLUMNS
from heirlog.spark.option_names import (
    CLIENT_PROPERTIES,
    SINK_OPTIONS,
    SOURCE_OPTIONS,
    STRATEGIES,
    warn_of_ineffective,
)
from heirlog.spark.options import EARLIEST, LATEST, OnDataLoss, OptionError, columns_of, read_options, sink_options
from heirlog.spark.source import HeirlogDataSource

SERVERS = {"kafka.bootstrap.servers": "h:1"}
MINIMAL = {**SERVERS, "subscribe": "t"}


def batch(**options: str) -> Any:
    return read_options({**MINIMAL, **options}, streaming=False)


def stream(**options: str) -> Any:
    return read_options({**MINIMAL, **options}, streaming=True)


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


def test_a_file_of_client_properties_may_say_how_to_connect_and_the_options_win(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text('bootstrap.servers=a:1\nsasl.jaas.config=x required username="u";\nacks=1\nclient.id=file\n')
    given = {"commandConfig": str(file), "kafka.client.id": "own"}
    read = read_options({**given, "subscribe": "t"}, streaming=False)
    assert (read.bootstrap, read.properties["client.id"]) == ("a:1", "own")
    written = sink_options({**given, "topic": "t"})
    assert (written.bootstrap, written.acks, written.idempotent) == ("a:1", 1, False)
    assert written.properties["sasl.jaas.config"] == 'x required username="u";'
    with pytest.raises(OptionError, match="commandConfig: there is no configuration file"):
        sink_options({"commandConfig": str(tmp_path / "none")})


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"t":{"0":-1}}'},
        {"startingOffsets": '{"t":{"0":1}}', "startingOffsetsDefault": "latest"},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"t":{"0":-2}}'},
    ],
)
def test_a_batch_cannot_begin_at_the_end_nor_end_at_the_begin(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"can't be (latest|earliest) for batch queries"):
        batch(**options)


@pytest.mark.parametrize("kind", ["Offsets", "OffsetsByTimestamp"])
def test_a_batch_that_would_end_before_it_begins_is_refused(kind: str) -> None:
    def both(start: int, end: int) -> dict[str, str]:
        return {f"starting{kind}": f'{{"t":{{"0":{start}}}}}', f"ending{kind}": f'{{"t":{{"0":{end}}}}}'}

    assert batch(**both(5, 5)).ending
    with pytest.raises(OptionError, match=rf"starting{kind} for t-0 is 6, behind its ending{kind}, 5"):
        batch(**both(6, 5))
    if kind == "Offsets":
        assert batch(**both(6, -1)).ending, "the end is not known yet"


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


def test_a_default_without_offsets_is_where_every_partition_begins() -> None:
    assert stream(startingOffsetsDefault="earliest").starting.offset == EARLIEST
    assert stream(startingOffsets="latest", startingOffsetsDefault="earliest").starting.offset == LATEST
    with pytest.raises(OptionError, match="startingOffsetsDefault is 'soon'"):
        stream(startingOffsets="latest", startingOffsetsDefault="soon")


def test_the_more_precise_of_several_begins_wins() -> None:
    options = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    assert batch(**options).starting.timestamps == {("t", 0): 7}
    assert batch(**options, startingTimestamp="9").starting.timestamp_ms == 9


def test_a_timestamp_that_nothing_reaches_is_an_error_at_the_begin_and_the_end_at_the_end() -> None:
    options = batch(startingTimestamp="9", endingTimestamp="10")
    assert not options.starting.latest_if_none
    assert options.ending.latest_if_none
    assert batch(startingTimestamp="9", startingOffsetsByTimestampStrategy="latest").starting.latest_if_none


def test_offsets_may_come_with_what_a_stream_remembers_beside_them() -> None:
    text = '{"t":{"0":5},"@heirlog":{"topicIds":{},"epochs":{}}}'
    assert stream(startingOffsets=text, startingOffsetsDefault="earliest").starting.offsets == {("t", 0): 5}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("15m", 900_000),
        ("30s", 30_000),
        ("500ms", 500),
        ("2H", 7_200_000),
        ("5min", 300_000),
        ("1d", 86_400_000),
        ("70", 70),
    ],
)
def test_times_are_read_as_spark_reads_them(value: str, expected: int) -> None:
    assert stream(maxTriggerDelay=value).max_trigger_delay_ms == expected


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


def test_numbers_are_read_as_java_reads_them_and_times_may_mean_the_ends_of_a_log() -> None:
    assert batch(minPartitions="+7").min_partitions == 7
    assert batch(startingTimestamp=" -2 ", endingTimestamp="-1").starting.timestamp_ms == EARLIEST
    assert batch(endingOffsetsByTimestamp='{"t":{"+0":-1}}').ending.timestamps == {("t", 0): LATEST}
    assert sink_options({**SERVERS, "kafka.batch.size": " 1000 "}).batch_bytes == 1000, "Kafka's own takes spaces"


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


def test_the_sink_s_client_options_are_understood() -> None:
    options = sink_options({**SERVERS, "topic": "t", "kafka.compression.type": "zstd", "kafka.batch.size": "1000"})
    assert (options.topic, options.codec, options.batch_bytes, options.acks, options.idempotent) == (
        "t",
        4,
        1000,
        -1,
        True,
    )
    assert not sink_options({**SERVERS, "kafka.acks": "1"}).idempotent
    with pytest.raises(OptionError, match=r"idempotence=true needs all"):
        sink_options({**SERVERS, "kafka.acks": "1", "kafka.enable.idempotence": "true"})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("kafka.acks", "kafka.acks is 'x'"),
        ("kafka.compression.type", "kafka.compression.type is 'x'"),
        ("kafka.key.serializer", "'key.serializer' is not supported"),
        ("kafka.value.serializer", "'value.serializer' is not supported"),
        ("kafka.transactional.id", "exactlyOnce is not: set exactlyOnce to true"),
        ("kafka.partitioner.class", "'partitioner.class' is not supported"),
    ],
)
def test_a_sink_refuses_what_it_cannot_do(name: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        sink_options({**SERVERS, name: "x"})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "needs kafka.transactional.id"),
        ({"kafka.transactional.id": "x", "kafka.acks": "1"}, "needs kafka.acks=all"),
        ({"kafka.transactional.id": "x", "kafka.enable.idempotence": "false"}, "kafka.enable.idempotence=true"),
        ({"kafka.transactional.id": "x", "batchId": "b"}, "batchId is for batch writes"),
        ({"kafka.transactional.id": "x", "kafka.transaction.timeout.ms": "0"}, "must be positive"),
    ],
)
def test_exactly_once_refuses_what_would_break_it(more: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        sink_options({**SERVERS, "exactlyOnce": "true", **more}, streaming=True)


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
