"""A changed configuration reaches the logs that are open, and only those that it is about."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.metadata.image import BROKER_RESOURCE
from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.storage.log_flusher import FLUSHES_AT_ONCE

from .fakes import Rig, batch, state


@pytest.fixture
def rig() -> Rig:
    rig = Rig().started()
    rig.show(state([1, 2]))
    rig.show(state([1]), "bar")
    return rig


def alter(rig: Rig, broker: str, name: str, value: str | None) -> None:
    rig.image.set_config(BROKER_RESOURCE, broker, name, value, rig.journal)
    rig.publish()


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        ("retention.ms", "1000", "retention_ms", 1000),
        ("retention.bytes", "1000", "retention_bytes", 1000),
        ("segment.bytes", "2000000", "segment_bytes", 2_000_000),
        ("segment.ms", "1000", "segment_ms", 1000),
        ("segment.index.bytes", "1000", "segment_index_bytes", 1000),
        ("index.interval.bytes", "10", "index_interval_bytes", 10),
        ("max.message.bytes", "1000", "max_message_bytes", 1000),
        ("flush.messages", "5", "flush_messages", 5),
        ("flush.ms", "5", "flush_ms", 5),
        ("file.delete.delay.ms", "5", "file_delete_delay_ms", 5),
        ("message.timestamp.type", "LogAppendTime", "log_append_time", True),
        ("message.timestamp.before.max.ms", "5", "timestamp_before_max_ms", 5),
        ("message.timestamp.after.max.ms", "5", "timestamp_after_max_ms", 5),
        ("compression.type", "uncompressed", "compression", 0),
        ("compression.type", "zstd", "compression", 4),
        ("compression.type", "zstd", "compression_level", 3),
    ],
)
def test_a_topics_value_reaches_its_logs_and_no_others(
    rig: Rig, name: str, value: str, attribute: str, expected: Any
) -> None:
    before = getattr(rig.partition("bar").log.config, attribute)
    assert before != expected
    rig.set_config(name, value)
    rig.publish()
    assert getattr(rig.partition().log.config, attribute) == expected
    assert getattr(rig.partition("bar").log.config, attribute) == before


def test_values_of_all_brokers_and_of_this_one_reach_every_log_and_those_of_others_none(rig: Rig) -> None:
    def limits() -> tuple[int, int]:
        return rig.partition().log.config.max_message_bytes, rig.partition("bar").log.config.max_message_bytes

    alter(rig, "", "message.max.bytes", "2000")
    assert limits() == (2000, 2000)
    alter(rig, "1", "message.max.bytes", "3000")
    assert limits() == (3000, 3000)
    alter(rig, "2", "message.max.bytes", "4000")
    assert limits() == (3000, 3000)
    alter(rig, "1", "message.max.bytes", None)
    assert limits() == (2000, 2000)


def test_the_level_is_that_of_the_codec_in_use(rig: Rig) -> None:
    for codec in ("gzip", "lz4", "zstd"):
        rig.set_config(f"compression.{codec}.level", str(len(codec)))
    levels = []
    for codec in ("gzip", "lz4", "zstd", "snappy", "producer"):
        rig.set_config("compression.type", codec)
        rig.publish()
        levels.append(rig.partition().log.config.compression_level)
    assert levels == [4, 3, 4, None, None]


def test_how_long_producers_are_remembered_can_change(rig: Rig) -> None:
    alter(rig, "", "producer.id.expiration.ms", "5000")
    assert rig.partition().log.config.producer_id_expiration_ms == 5000


def test_flush_messages_counts_from_the_next_append_on(rig: Rig) -> None:
    rig.produce(1, batch(2), topic="bar")
    rig.env.advance(100)
    assert rig.partition("bar").log.flushed_offset == 0
    rig.set_config("flush.messages", "3", "bar")
    rig.publish()
    rig.produce(1, batch(1), topic="bar")
    rig.env.advance(100)
    assert rig.partition("bar").log.flushed_offset == 3


def test_a_client_faster_than_the_disk_does_not_pile_up_flushes(rig: Rig) -> None:
    rig.set_config("flush.messages", "1", "bar")
    rig.publish()
    asked = []
    flush = rig.env.files.flush
    rig.env.files.flush = lambda file, received: (asked.append(file), flush(file, received))  # type: ignore[method-assign]
    for _ in range(1000):
        rig.produce(1, batch(1), topic="bar")
    assert 0 < len(asked) <= 2 * FLUSHES_AT_ONCE, "a log is a file or two"
    rig.env.advance(100)
    assert rig.partition("bar").log.flushed_offset == 1000, "what came meanwhile is flushed without another append"


def test_a_lowered_min_isr_lets_go_who_waits(rig: Rig) -> None:
    rig.set_config("min.insync.replicas", "2")
    rig.show(state([1, 2], isr=[1, 2], partition_epoch=2))
    answers: list[Any] = []
    waiting = rig.produce(-1, batch(1), timeout_ms=60_000)
    assert isinstance(waiting, Pending)
    waiting.then(answers.append)
    rig.show(state([1, 2], isr=[1], partition_epoch=3))
    assert not answers
    rig.set_config("min.insync.replicas", "1")
    rig.publish()
    (response,) = answers
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_a_raised_min_isr_refuses_the_next_producer(rig: Rig) -> None:
    rig.show(state([1, 2], isr=[1], partition_epoch=2))
    rig.set_config("min.insync.replicas", "2")
    rig.publish()
    response = rig.produce(-1)
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
