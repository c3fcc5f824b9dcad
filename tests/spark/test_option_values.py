from __future__ import annotations

from pathlib import Path

import pytest
from spark.given_options import SERVERS, batch, stream

from heirlog.spark.offset_limits import EARLIEST, LATEST
from heirlog.spark.option_values import OptionError
from heirlog.spark.options import read_options
from heirlog.spark.sink_options import sink_options


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


def test_numbers_are_read_as_java_reads_them_and_times_may_mean_the_ends_of_a_log() -> None:
    assert batch(minPartitions="+7").min_partitions == 7
    assert batch(startingTimestamp=" -2 ", endingTimestamp="-1").starting.timestamp_ms == EARLIEST
    assert batch(endingOffsetsByTimestamp='{"t":{"+0":-1}}').ending.timestamps == {("t", 0): LATEST}
    assert sink_options({**SERVERS, "kafka.batch.size": " 1000 "}).batch_bytes == 1000, "Kafka's own takes spaces"
