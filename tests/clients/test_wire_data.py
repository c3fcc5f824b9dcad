"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch as a client with a codec of its own sees them."""

from __future__ import annotations

import struct
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from clients.wire_client import WireClient
from clients.world import World
from crc32c import crc32c

from heirlog.protocol.batch import HEADER_SIZE, decode_records, encode_batch, walk

FIRST_MS = 1_700_000_000_000
PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
FOREVER_MS = 10 * 60_000
"""A long poll that does not end before the client loses patience."""


@pytest.fixture(scope="module")
def filled(world: World) -> str:
    """A topic of two partitions; partition 0 has batches at 0-2, 3-4 and 5, with rising timestamps but for one."""
    topic = world.topic(partitions=2)
    assert produce(world, topic, batch(3, FIRST_MS + 100)).error_code.value == 0
    assert produce(world, topic, batch(2, FIRST_MS + 900)).error_code.value == 0
    assert produce(world, topic, batch(1, FIRST_MS + 500)).error_code.value == 0
    return topic


@pytest.fixture(scope="module")
def replicated(world: World) -> str:
    return world.topic(replicas=[1, 2])


@pytest.fixture(scope="module")
def leader(world: World, filled: str) -> Iterator[WireClient]:
    with world.broker(world.leader(filled)) as wire_client:
        yield wire_client


def batch(count: int = 1, first_ms: int = FIRST_MS, size: int = 5, **header: Any) -> bytes:
    records = [(b"k%d" % number, bytes([65 + number % 26]) * size, (), first_ms + number) for number in range(count)]
    return bytes(encode_batch(records, **header))


def produce(
    world: World, topic: str, records: bytes | None, *, version: int = 9, acks: int = -1, partition: int = 0
) -> Any:
    """The answer for that partition."""
    with world.broker(world.leader(topic, partition)) as wire_client:
        return produce_on(wire_client, world, topic, records, version=version, acks=acks, partition=partition)


def produce_on(
    wire_client: WireClient,
    world: World,
    topic: str,
    records: bytes | None,
    *,
    version: int = 9,
    acks: int = -1,
    partition: int = 0,
    timeout: int = 10_000,
) -> Any:
    topic_id = world.topic_id(topic) if version >= 13 else None
    data = {"name": topic, "topic_id": topic_id, "partition_data": [{"index": partition, "records": records}]}
    answer = wire_client.ask("produce", version, acks=acks, timeout=timeout, topic_data=[data])
    return answer.responses[0].partition_responses[0]


def fetch(
    wire_client: WireClient, world: World, topic: str, version: int, *partitions: dict[str, Any], **top: Any
) -> Any:
    """The whole answer."""
    topic_id = world.topic_id(topic) if version >= 13 else None
    asked = [{"partition_max_bytes": 1_000_000, **one} for one in partitions or ({},)]
    top = {"max_bytes": 50_000_000, **top}
    return wire_client.ask(
        "fetch", version, topics=[{"topic": topic, "topic_id": topic_id, "partitions": asked}], **top
    )


def fetch_one(wire_client: WireClient, world: World, topic: str, version: int = 12, **partition: Any) -> Any:
    return fetch(wire_client, world, topic, version, partition).responses[0].partitions[0]


def end_offset(world: World, topic: str, partition: int = 0) -> int:
    asked = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
    answer = world.ask_leader(
        topic, "list_offsets", 7, partition, replica_id=-1, topics=[{"name": topic, "partitions": [asked]}]
    )
    found: int = answer.topics[0].partitions[0].offset
    return found


# -- Produce ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produced_batch_is_told_its_offset(world: World, replicated: str, version: int, acks: int) -> None:
    first = produce(world, replicated, batch(4), version=version, acks=acks)
    second = produce(world, replicated, batch(2), version=version, acks=acks)
    assert (first.error_code.value, second.error_code.value) == (0, 0)
    assert second.base_offset == first.base_offset + 4
    assert second.log_append_time is None, "the producer's own timestamps are kept"
    if version >= 5:
        assert second.log_start_offset == 0
    if version >= 8:
        assert second.record_errors == ()
        assert second.error_message is None


def test_acks_0_is_not_answered_and_yet_written(world: World) -> None:
    topic = world.topic(replicas=[1])
    data = {"name": topic, "partition_data": [{"index": 0, "records": batch()}]}
    with world.broker(1) as wire_client:
        wire_client.send("produce", 9, acks=0, topic_data=[data])
        assert wire_client.ask("api_versions", 0).error_code.value == 0, "the next answer is that of the next request"
    assert end_offset(world, topic) == 1


def test_acks_0_that_fails_closes_the_connection(world: World) -> None:
    data = {"name": "nowhere", "partition_data": [{"index": 0, "records": batch()}]}
    with world.broker(1) as wire_client, pytest.raises(ConnectionError):
        wire_client.send("produce", 9, acks=0, topic_data=[data])
        wire_client.receive()


@pytest.mark.parametrize("version", [3, 8, 12, 13])
@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused(world: World, filled: str, version: int, acks: int) -> None:
    refused = produce(world, filled, batch(), version=version, acks=acks)
    assert refused.error_code.name == "invalid_required_acks"
    assert refused.base_offset == -1


def damaged(records: bytes, at: int, shape: str, value: int, *, fix_crc: bool = True) -> bytes:
    changed = bytearray(records)
    struct.pack_into(shape, changed, at, value)
    if fix_crc:
        struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
    return bytes(changed)


REFUSED_BATCHES = {
    "a wrong CRC": (damaged(batch(), 17, ">I", 12345, fix_crc=False), "corrupt_message"),
    "damaged records": (damaged(batch(), HEADER_SIZE + 3, ">B", 0xFF, fix_crc=False), "corrupt_message"),
    "a control batch": (batch(producer_id=1, producer_epoch=0, base_sequence=0, control=True), "invalid_record"),
    "a control batch without producer": (batch(control=True), "invalid_record"),
    "more records counted than offsets": (damaged(batch(2), 57, ">i", 3), "invalid_record"),
    "fewer records counted than offsets": (damaged(batch(2), 57, ">i", 1), "invalid_record"),
    "no records counted": (damaged(batch(1), 57, ">i", 0), "invalid_record"),
    "a negative number of records": (damaged(batch(1), 57, ">i", -1), "invalid_record"),
    "a base offset other than 0": (damaged(batch(), 0, ">q", 7), "invalid_record"),
    "a batch too large": (batch(1, size=20_000), "message_too_large"),
    "two batches": (batch() + batch(), "invalid_record"),
    "no batch": (b"", "invalid_record"),
    "null": (None, "invalid_record"),
    "a message of format 1": (damaged(batch(), 16, ">b", 1), "invalid_record"),
    "half a batch": (batch()[:-3], "invalid_record"),
    "half a header": (batch()[:30], "corrupt_message"),
    "a length of nothing": (damaged(batch(), 8, ">i", 0), "corrupt_message"),
    "a negative length": (damaged(batch(), 8, ">i", -1), "corrupt_message"),
    "a codec that does not exist": (damaged(batch(), 21, ">h", 7), "unsupported_compression_type"),
    "a producer id without sequence": (batch(producer_id=1, producer_epoch=0, base_sequence=-1), "invalid_record"),
    "a log append time of the client's": (damaged(batch(), 21, ">h", 8), "invalid_timestamp"),
}


def test_a_batch_of_a_transaction_needs_the_transactional_id(world: World) -> None:
    topic = world.topic(replicas=[1])
    records = batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    for version in (3, 9, 13):
        refused = produce(world, topic, records, version=version, acks=1)
        assert (refused.error_code.name, refused.base_offset) == ("transactional_id_authorization_failed", -1)
    assert end_offset(world, topic) == 0


@pytest.mark.parametrize("kind", REFUSED_BATCHES)
def test_a_batch_that_must_not_be_written_is_refused_and_leaves_nothing(world: World, kind: str) -> None:
    records, code = REFUSED_BATCHES[kind]
    topic = world.topic(replicas=[1], max_message_bytes="10000")
    for version, acks in ((3, 1), (9, -1), (13, 1)):
        refused = produce(world, topic, records, version=version, acks=acks)
        assert (refused.error_code.name, refused.base_offset) == (code, -1)
        if version >= 8:
            assert refused.error_message
    assert end_offset(world, topic) == 0
    assert produce(world, topic, batch()).base_offset == 0


@pytest.mark.parametrize("codec", range(1, 5))
def test_a_compressed_batch_is_stored_and_sent_as_it_came(world: World, codec: int) -> None:
    topic = world.topic(replicas=[1])
    records = batch(50, compression=codec)
    assert produce(world, topic, records).error_code.value == 0
    with world.broker(1) as wire_client:
        found = bytes(fetch_one(wire_client, world, topic).records)
    assert found[16:] == records[16:], "only base offset and leader epoch are the broker's"
    assert len(decode_records(found)) == 50


def test_log_append_time_is_the_brokers(world: World) -> None:
    topic = world.topic(replicas=[1], message_timestamp_type="LogAppendTime")
    before_ms = time.time() * 1000 - 2
    answer = produce(world, topic, batch(3))
    append_ms = answer.log_append_time.timestamp() * 1000
    assert before_ms <= append_ms <= time.time() * 1000 + 2
    with world.broker(1) as wire_client:
        found = bytes(fetch_one(wire_client, world, topic).records)
    ((_, header),) = walk(found)
    assert header.log_append_time
    assert {record.timestamp_ms for record in decode_records(found)} == {round(append_ms)}


def test_timestamps_far_from_the_brokers_clock_are_refused(world: World) -> None:
    now_ms = int(time.time() * 1000)
    usual, narrow = world.topic(replicas=[1]), world.topic(replicas=[1], message_timestamp_before_max_ms="60000")
    wide = world.topic(replicas=[1], message_timestamp_after_max_ms=str(10 * 86_400_000))
    for topic, first_ms, code in (
        (usual, now_ms + 50 * 60_000, "none"),
        (usual, now_ms + 70 * 60_000, "invalid_timestamp"),
        (wide, now_ms + 86_400_000, "none"),
        (usual, 0, "none"),
        (usual, -1, "none"),
        (narrow, now_ms - 120_000, "invalid_timestamp"),
        (narrow, -1, "none"),
    ):
        assert produce(world, topic, batch(1, first_ms)).error_code.name == code


def test_a_wrong_broker_names_the_leader(world: World) -> None:
    topic = world.topic(replicas=[2, 3])
    for broker, version in ((1, 10), (3, 12), (3, 13)):
        topic_id = world.topic_id(topic)
        data = {"name": topic, "topic_id": topic_id, "partition_data": [{"index": 0, "records": batch()}]}
        with world.broker(broker) as wire_client:
            answer = wire_client.ask("produce", version, acks=1, timeout=1000, topic_data=[data])
        partition = answer.responses[0].partition_responses[0]
        assert partition.error_code.name == "not_leader_or_follower"
        assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 0)
        assert [node.node_id for node in answer.node_endpoints] == [2]


@pytest.mark.parametrize("version", [3, 12, 13])
def test_produce_to_what_does_not_exist(world: World, filled: str, version: int) -> None:
    nowhere = "unknown_topic_id" if version >= 13 else "unknown_topic_or_partition"
    topics = [
        {"name": "nowhere", "topic_id": uuid.uuid4(), "partition_data": [{"index": 0, "records": batch()}]},
        {"name": filled, "topic_id": world.topic_id(filled), "partition_data": [{"index": 99, "records": batch()}]},
    ]
    answer = world.ask("produce", version, acks=-1, timeout=1000, topic_data=topics)
    codes = [topic.partition_responses[0].error_code.name for topic in answer.responses]
    assert codes == [nowhere, "unknown_topic_or_partition"]


def test_partitions_of_one_request_stand_for_themselves(world: World) -> None:
    topic = world.topic(partitions=3, replicas=[1, 2])
    data = [
        {"index": 0, "records": batch(2)},
        {"index": 1, "records": REFUSED_BATCHES["a wrong CRC"][0]},
        {"index": 2, "records": batch(3)},
        {"index": 3, "records": batch(1)},
    ]
    with world.broker(1) as wire_client:
        answer = wire_client.ask(
            "produce", 11, acks=-1, timeout=5000, topic_data=[{"name": topic, "partition_data": data}]
        )
    found = [(one.index, one.error_code.name) for one in answer.responses[0].partition_responses]
    assert found == [(0, "none"), (1, "corrupt_message"), (2, "none"), (3, "unknown_topic_or_partition")]


# -- Fetch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_brings_what_was_produced(world: World, filled: str, leader: WireClient, version: int) -> None:
    answer = fetch(leader, world, filled, version, {"partition": 0}, {"partition": 1}, isolation_level=version % 2)
    first, second = answer.responses[0].partitions
    assert [record.offset for _, h in walk(first.records) for record in decode_records(first.records, _)] == [*range(6)]
    assert (first.high_watermark, first.last_stable_offset, second.high_watermark) == (6, 6, 0)
    assert not second.records
    assert first.aborted_transactions in ((), None)
    if version >= 5:
        assert first.log_start_offset == 0
    if version >= 7:
        assert (answer.error_code.value, answer.session_id) == (0, 0)
    if version >= 11:
        assert first.preferred_read_replica == -1


def test_fetch_begins_with_the_batch_that_holds_the_offset(world: World, filled: str, leader: WireClient) -> None:
    for offset, base in ((0, 0), (2, 0), (3, 3), (4, 3), (5, 5)):
        found = fetch_one(leader, world, filled, fetch_offset=offset)
        assert next(walk(found.records))[1].base_offset == base
    assert not fetch_one(leader, world, filled, fetch_offset=6).records


@pytest.mark.parametrize("version", [4, 11, 12, 18])
@pytest.mark.parametrize("offset", [7, 2**62, -1])
def test_an_offset_outside_the_log(world: World, filled: str, leader: WireClient, offset: int, version: int) -> None:
    refused = fetch_one(leader, world, filled, version, fetch_offset=offset)
    assert refused.error_code.name == "offset_out_of_range"
    assert not refused.records
    assert refused.high_watermark == -1


@pytest.mark.parametrize(("epoch", "code"), [(0, "none"), (-1, "none"), (1, "unknown_leader_epoch")])
def test_the_clients_leader_epoch_is_compared(
    world: World, filled: str, leader: WireClient, epoch: int, code: str
) -> None:
    for version in (9, 12, 18):
        assert fetch_one(leader, world, filled, version, current_leader_epoch=epoch).error_code.name == code


def test_an_epoch_that_the_log_never_had_diverges(world: World, filled: str, leader: WireClient) -> None:
    for version in (12, 18):
        agrees = fetch_one(leader, world, filled, version, fetch_offset=6, last_fetched_epoch=0)
        assert agrees.diverging_epoch.epoch == -1
        beyond = fetch_one(leader, world, filled, version, fetch_offset=9, last_fetched_epoch=0)
        assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (0, 6)
        assert not beyond.records
        newer = fetch_one(leader, world, filled, version, fetch_offset=2, last_fetched_epoch=5)
        assert newer.error_code.name == "offset_out_of_range"


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_fetch_from_what_does_not_exist(world: World, filled: str, leader: WireClient, version: int) -> None:
    nowhere = "unknown_topic_id" if version >= 13 else "unknown_topic_or_partition"
    answer = leader.ask(
        "fetch",
        version,
        max_bytes=1000,
        max_wait=5000,
        min_bytes=1,
        topics=[
            {"topic": "nowhere", "topic_id": uuid.uuid4(), "partitions": [{"partition_max_bytes": 100}]},
            {"topic": filled, "topic_id": world.topic_id(filled), "partitions": [{"partition": 9}]},
        ],
    )
    codes = [topic.partitions[0].error_code.name for topic in answer.responses]
    assert codes == [nowhere, "unknown_topic_or_partition"]


def test_fetch_from_a_wrong_broker_names_the_leader(world: World) -> None:
    topic = world.topic(replicas=[2, 3])
    for broker, version in ((1, 12), (3, 16), (3, 18)):
        with world.broker(broker) as wire_client:
            answer = fetch(wire_client, world, topic, version, {}, max_wait=5000, min_bytes=1)
        partition = answer.responses[0].partitions[0]
        assert partition.error_code.name == "not_leader_or_follower"
        assert partition.current_leader.leader_id == 2
        if version >= 16:
            assert [node.node_id for node in answer.node_endpoints] == [2]


def test_limits_in_bytes_are_kept_but_for_the_first_batch(world: World) -> None:
    topic = world.topic(partitions=2, replicas=[1])
    for partition in (0, 1):
        for _ in range(4):
            assert produce(world, topic, batch(1, size=1000), partition=partition, acks=1).error_code.value == 0
    size = len(batch(1, size=1000))

    def sizes(**limits: Any) -> list[int]:
        top = {"max_bytes": limits.pop("max_bytes", 1_000_000)}
        asked = [{"partition": one, **limits} for one in (0, 1)]
        with world.broker(1) as wire_client:
            answer = fetch(wire_client, world, topic, 12, *asked, **top)
        return [sum(1 for _ in walk(one.records or b"")) for one in answer.responses[0].partitions]

    assert sizes() == [4, 4]
    assert sizes(partition_max_bytes=2 * size) == [2, 2]
    assert sizes(partition_max_bytes=2 * size + size // 2) == [2, 2], "no half batches"
    assert sizes(partition_max_bytes=1) in ([1, 0], [0, 1]), "at least one batch in the whole answer"
    assert sizes(max_bytes=1) in ([1, 0], [0, 1])
    assert sum(sizes(max_bytes=5 * size)) == 5


def test_a_partition_behind_a_busy_one_gets_its_turn(world: World) -> None:
    topic = world.topic(partitions=2, replicas=[1])
    for partition in (0, 1):
        produce(world, topic, batch(1, size=1000), partition=partition, acks=1)
    with world.broker(1) as wire_client:
        seen = set()
        for _ in range(4):
            answer = fetch(wire_client, world, topic, 12, {"partition": 0}, {"partition": 1}, max_bytes=500)
            seen |= {one.partition_index for one in answer.responses[0].partitions if one.records}
    assert seen == {0, 1}


def test_a_long_poll_waits_as_long_as_it_may(world: World, filled: str, leader: WireClient) -> None:
    for top, at_least_s in (
        ({"max_wait": 250, "min_bytes": 1}, 0.24),
        # who waited here would be given up by the client
        ({"max_wait": FOREVER_MS, "min_bytes": 0}, 0),
        ({"max_wait": 0, "min_bytes": 1}, 0),
    ):
        began = time.monotonic()
        assert not fetch(leader, world, filled, 12, {"fetch_offset": 6}, **top).responses[0].partitions[0].records
        assert time.monotonic() - began >= at_least_s


def test_a_long_poll_ends_early_when_enough_has_come(world: World) -> None:
    topic = world.topic(partitions=2, replicas=[1, 2])
    size = len(batch(1, size=1000))
    with world.broker(1) as waiting, world.broker(1) as producer:
        body = [{"topic": topic, "partitions": [{"partition": p, "partition_max_bytes": 10**6} for p in (0, 1)]}]
        asked = waiting.send("fetch", 12, max_bytes=10**6, max_wait=FOREVER_MS, min_bytes=2 * size, topics=body)
        assert produce_on(producer, world, topic, batch(1, size=1000), partition=0).error_code.value == 0
        assert produce_on(producer, world, topic, batch(1, size=1000), partition=1).error_code.value == 0
        answer = waiting.answer(asked)
    assert [len(one.records) for one in answer.responses[0].partitions] == [size, size]


def test_a_long_poll_on_a_deleted_topic_ends(world: World) -> None:
    topic = world.topic(replicas=[1])
    with world.broker(1) as waiting:
        body = [{"topic": topic, "partitions": [{"partition": 0, "partition_max_bytes": 10**6}]}]
        asked = waiting.send("fetch", 12, max_bytes=10**6, max_wait=FOREVER_MS, min_bytes=1, topics=body)
        world.ask("delete_topics", 5, topic_names=[topic], timeout=5000)
        answer = waiting.answer(asked)
    assert answer.responses[0].partitions[0].error_code.name in ("unknown_topic_or_partition", "not_leader_or_follower")


SESSION_VERSIONS = (7, 11, 12, 13, 18)


def session_ask(
    wire_client: WireClient, world: World, topic: str, version: int, session: tuple[int, int], *asked: Any, **top: Any
) -> Any:
    """An incremental request; without `asked` it names nothing."""
    top = {"max_bytes": 50_000_000, "session_id": session[0], "session_epoch": session[1], **top}
    if asked:
        return fetch(wire_client, world, topic, version, *asked, **top)
    return wire_client.ask("fetch", version, topics=[], **top)


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_fetch_session_answers_only_what_is_new(world: World, version: int) -> None:
    topic = world.topic(replicas=[1])
    assert produce(world, topic, batch(3)).error_code.value == 0
    topic_id = world.topic_id(topic) if version >= 13 else None
    with world.broker(1) as wire_client:
        full = fetch(wire_client, world, topic, version, {}, session_epoch=0)
        assert full.session_id > 0
        assert full.responses[0].partitions[0].records
        assert (
            session_ask(wire_client, world, topic, version, (full.session_id, 1), {"fetch_offset": 3}).responses == ()
        )
        assert produce(world, topic, batch(2)).error_code.value == 0
        (news,) = session_ask(wire_client, world, topic, version, (full.session_id, 2)).responses
        assert news.partitions[0].records
        forgotten = [{"topic": topic, "topic_id": topic_id, "partitions": [0]}]
        ended = session_ask(
            wire_client,
            world,
            topic,
            version,
            (full.session_id, 3),
            forgotten_topics_data=forgotten,
            max_wait=FOREVER_MS,
        )
        assert (ended.error_code.value, ended.session_id, ended.responses) == (0, 0, ())
        gone = session_ask(wire_client, world, topic, version, (full.session_id, 4))
        assert gone.error_code.name == "fetch_session_id_not_found"


def test_a_fetch_session_is_refused_by_name(world: World, filled: str, leader: WireClient) -> None:
    unknown = session_ask(leader, world, filled, 18, (1234, 7), {})
    assert (unknown.error_code.name, unknown.responses) == ("fetch_session_id_not_found", ())
    session_id = fetch(leader, world, filled, 18, {}, session_epoch=0).session_id
    assert session_ask(leader, world, filled, 18, (session_id, 2)).error_code.name == "invalid_fetch_session_epoch"
    assert session_ask(leader, world, filled, 12, (session_id, 1)).error_code.name == "fetch_session_topic_id_error"
    ended = fetch(leader, world, filled, 18, {}, session_id=session_id, session_epoch=-1)
    assert (ended.error_code.value, ended.session_id) == (0, 0)
    assert session_ask(leader, world, filled, 18, (session_id, 1)).error_code.name == "fetch_session_id_not_found"


def test_a_long_poll_of_a_fetch_session_ends_with_records_and_with_the_next_request(world: World) -> None:
    topic = world.topic(replicas=[1], partitions=2)
    with world.broker(1) as wire_client:
        session_id = fetch(wire_client, world, topic, 18, {}, session_epoch=0).session_id
        top = {"session_id": session_id, "min_bytes": 1, "max_bytes": 1_000_000, "max_wait": FOREVER_MS}
        first = wire_client.send("fetch", 18, session_epoch=1, **top)
        assert produce(world, topic, batch()).error_code.value == 0
        assert wire_client.answer(first).responses[0].partitions[0].records
        asked = [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1_000_000}]
        topics = [{"topic_id": world.topic_id(topic), "partitions": asked}]
        second = wire_client.send("fetch", 18, session_epoch=2, topics=topics, **top)
        topics[0]["partitions"] = [{"partition": 1, "partition_max_bytes": 1_000_000}]
        third = wire_client.send("fetch", 18, session_epoch=3, topics=topics, **top)
        assert wire_client.answer(second).responses == ()
        assert produce(world, topic, batch(), partition=1).error_code.value == 0
        assert wire_client.answer(third).responses[0].partitions[0].partition_index == 1


def test_a_stranger_that_plays_a_follower_is_refused(world: World, filled: str, leader: WireClient) -> None:
    unknown = fetch(leader, world, filled, 14, {"fetch_offset": 6}, replica_id=77)
    assert unknown.responses[0].partitions[0].error_code.name == "not_leader_or_follower"
    other = {1: 2, 2: 3, 3: 1}[world.leader(filled)]
    stale = fetch(leader, world, filled, 17, {}, replica_state={"replica_id": other, "replica_epoch": 0})
    assert stale.responses[0].partitions[0].error_code.name == "not_leader_or_follower"


# -- ListOffsets, OffsetForLeaderEpoch -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(
    ("timestamp", "offset", "found_ms"),
    [
        (-1, 6, None),
        (-2, 0, None),
        (-3, 4, FIRST_MS + 901),
        (-4, 0, None),
        (-5, -1, None),
        (-6, -1, None),
        (0, 0, FIRST_MS + 100),
        (FIRST_MS + 101, 1, FIRST_MS + 101),
        (FIRST_MS + 103, 3, FIRST_MS + 900),
        (FIRST_MS + 500, 3, FIRST_MS + 900),
        (FIRST_MS + 902, -1, None),
    ],
)
def test_list_offsets(
    world: World, filled: str, leader: WireClient, version: int, timestamp: int, offset: int, found_ms: int | None
) -> None:
    asked = {"current_leader_epoch": -1, "timestamp": timestamp}
    answer = leader.ask("list_offsets", version, replica_id=-1, topics=[{"name": filled, "partitions": [asked]}])
    found = answer.topics[0].partitions[0]
    if timestamp in OLDEST_VERSION and version < OLDEST_VERSION[timestamp]:
        assert found.error_code.name == "unsupported_version"
        return
    assert (found.error_code.name, found.offset) == ("none", offset)
    assert found.timestamp == (-1 if found_ms is None else found_ms)
    if version >= 4 and offset >= 0:
        assert found.leader_epoch == 0


OLDEST_VERSION = {-3: 7, -4: 8, -5: 9, -6: 11}
"""ListOffsets: the first version in which a special timestamp may be asked for."""


@pytest.mark.parametrize("version", [1, 4, 11])
def test_list_offsets_errors(world: World, filled: str, leader: WireClient, version: int) -> None:
    topics = [
        {"name": "nowhere", "partitions": [{"timestamp": -1, "current_leader_epoch": -1}]},
        {
            "name": filled,
            "partitions": [
                {"partition_index": 9, "timestamp": -1, "current_leader_epoch": -1},
                {"partition_index": 0, "timestamp": -7, "current_leader_epoch": -1},
                {"partition_index": 1, "timestamp": -1, "current_leader_epoch": 8},
            ],
        },
    ]
    answer = leader.ask("list_offsets", version, replica_id=-1, topics=topics)
    codes = [one.error_code.name for topic in answer.topics for one in topic.partitions]
    assert codes == [
        "unknown_topic_or_partition",
        "unknown_topic_or_partition",
        "unsupported_version",
        "unknown_leader_epoch" if version >= 4 else "none",
    ]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(world: World, filled: str, leader: WireClient, version: int) -> None:
    partitions = [
        {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
        for partition, epoch, current in ((0, 0, -1), (0, 0, 0), (0, 3, -1), (0, -1, -1), (0, 0, 4), (9, 0, -1))
    ]
    answer = leader.ask(
        "offset_for_leader_epoch", version, replica_id=-1, topics=[{"topic": filled, "partitions": partitions}]
    )
    found = [(one.error_code.name, one.leader_epoch, one.end_offset) for one in answer.topics[0].partitions]
    assert found == [
        ("none", 0, 6),
        ("none", 0, 6),
        ("none", -1, -1),
        ("none", -1, -1),
        ("unknown_leader_epoch", -1, -1),
        ("unknown_topic_or_partition", -1, -1),
    ]
