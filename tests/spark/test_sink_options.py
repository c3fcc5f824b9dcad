from __future__ import annotations

import pytest
from spark.given_options import SERVERS

from heirlog.spark.option_values import OptionError
from heirlog.spark.sink_options import sink_options


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
