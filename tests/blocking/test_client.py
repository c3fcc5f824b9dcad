"""The data client on a real cluster: what is there, reading and writing while brokers die, offsets of groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from heirlog.blocking import (
    EARLIEST,
    LATEST,
    Client,
    CommittedOffset,
    EpochEnd,
    Fetched,
    LogTruncated,
    OffsetAt,
    OffsetOutOfRange,
    TopicRecreated,
)
from heirlog.protocol.batch import decode_records, encode_batch, walk
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest
from heirlog.testing.cluster import Cluster

PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config = {
        "auto.create.topics.enable": False,
        "min.insync.replicas": 2,
        "offsets.topic.num.partitions": 1,
        # records are of 2023 here: retention would find them
        "log.retention.check.interval.ms": 3_600_000,
    }
    with Cluster(nodes=3, config=config) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    cluster.wait_until_ready()
    with Client(cluster.bootstrap_servers) as made:
        yield made


names = (f"topic-{number}" for number in itertools.count())


Create = Callable[..., str]


@pytest.fixture
def create(cluster: Cluster, client: Client) -> Create:
    """A new topic, known to every broker."""

    def made(name: str | None = None) -> str:
        name = name or next(names)
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=3)
        response = client.send_to_any(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
        assert response.topics[0].error_code == 0, response
        return name

    return made


def delete(cluster: Cluster, client: Client, topic: str) -> None:
    by_name = DeleteTopicsRequest.DeleteTopicState(name=topic)
    client.send_to_any(DeleteTopicsRequest(topics=[by_name], topic_names=[topic], timeout_ms=30_000))


def batch(numbers: range, timestamp_ms: int = 1_700_000_000_000) -> bytearray:
    return encode_batch([(None, str(n).encode(), (), timestamp_ms + n) for n in numbers])


def values(parts: Iterator[Fetched]) -> list[int]:
    return [
        int(record.value or b"-1")
        for part in parts
        for at, _ in walk(part.records)
        for record in decode_records(part.records, at)
    ]


def written(client: Client, topic: str, count: int = 30) -> None:
    with client.producer() as producer:
        for first in range(0, count, 10):
            producer.send(topic, 0, batch(range(first, first + 10)))


def test_topics_have_names_ids_and_partitions_and_internal_ones_are_left_out(
    cluster: Cluster, client: Client, create: Create
) -> None:
    topic = create()
    client.commit("names", {(topic, 0): CommittedOffset(0)})
    assert topic in client.topic_names()
    assert "__consumer_offsets" not in client.topic_names()
    assert "__consumer_offsets" in client.topic_names(internal=True)
    found = client.topics([topic])[topic]
    assert (found.name, found.partitions, len(found.topic_id or b"")) == (topic, [0, 1, 2], 16)
    with pytest.raises(KafkaError, match="'nowhere'") as failed:
        client.topics([topic, "nowhere"])
    assert failed.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.topics([]) == {}


def test_offsets_are_listed_by_place_and_by_time(client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    latest = client.list_offsets({(topic, n): LATEST for n in range(PARTITIONS)}, isolation=1)
    assert [latest[topic, n].offset for n in range(PARTITIONS)] == [30, 0, 0]
    assert client.list_offsets({(topic, 0): EARLIEST})[topic, 0].offset == 0
    assert client.list_offsets({(topic, 0): 1_700_000_000_007}) == {(topic, 0): OffsetAt(7, 1_700_000_000_007, 0)}
    assert client.list_offsets({(topic, 0): 1_700_000_000_030})[topic, 0].offset == -1
    assert client.end_offset_for_epoch({(topic, 0): 0, (topic, 1): 0}) == {
        (topic, 0): EpochEnd(0, 30),
        (topic, 1): EpochEnd(0, 0),
    }


def test_a_range_is_read_in_whole_batches(client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    assert values(client.fetch(topic, 0, 0, 30)) == list(range(30))
    assert values(client.fetch(topic, 0, 13, 17)) == list(range(10, 20))
    assert values(client.fetch(topic, 0, 0, 30, max_bytes=1)) == list(range(30)), "a batch at a time"
    assert values(client.fetch(topic, 0, 7, 7)) == []


def test_who_stops_reading_early_disturbs_nobody(client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    reading = client.fetch(topic, 0, 0, 30, max_bytes=1)
    assert next(reading).next_offset == 10
    one, other = client.fetch(topic, 0, 0, 30, max_bytes=1), client.fetch(topic, 0, 0, 30, max_bytes=1)
    assert [next(one).next_offset, next(other).next_offset, next(one).next_offset] == [10, 10, 20]
    reading.close()  # type: ignore[attr-defined]  # a generator
    assert values(client.fetch(topic, 0, 0, 30)) == list(range(30))


def test_what_cannot_be_read_says_why(client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    with pytest.raises(OffsetOutOfRange, match="no offset 1000; it holds 0 to 30"):
        next(client.fetch(topic, 0, 1000, 1001))
    with pytest.raises(TimeoutError, match=r"nothing came at offset 30 .* 31 was to be reached"):
        next(client.fetch(topic, 0, 30, 31, stall_timeout_s=0.2))
    with pytest.raises(TopicRecreated, match="was deleted"):
        next(client.fetch(topic, 0, 0, 30, topic_id=b"x" * 16))
    with pytest.raises(KafkaError, match="no partition 9"):
        next(client.fetch(topic, 9, 0, 30, stall_timeout_s=0.2))


def test_another_history_is_noticed_by_its_epoch(client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    assert values(client.fetch(topic, 0, 20, 30, last_epoch=0)) == list(range(20, 30))
    with pytest.raises(LogTruncated, match="records of leader epoch 7 were read") as failed:
        next(client.fetch(topic, 0, 20, 30, last_epoch=7))
    assert (failed.value.offset, failed.value.end) == (20, EpochEnd(-1, -1))


def test_a_topic_made_again_under_its_name_is_not_read_on(cluster: Cluster, client: Client, create: Create) -> None:
    topic = create()
    written(client, topic)
    reading = client.fetch(topic, 0, 0, 40, max_bytes=1)
    next(reading)
    delete(cluster, client, topic)
    create(topic)
    with pytest.raises(TopicRecreated, match="was deleted"):
        list(reading)
    written(client, topic)
    assert values(client.fetch(topic, 0, 0, 30)) == list(range(30)), "whoever asks anew gets the new one"
    delete(cluster, client, topic)
    assert topic not in client.topic_names()


def test_a_batch_that_is_too_large_fails_the_producer_once_and_for_all(client: Client, create: Create) -> None:
    topic = create()
    producer = client.producer()
    producer.send(topic, 0, encode_batch([(None, bytes(2_000_000), (), 0)]))
    with pytest.raises(KafkaError) as failed:
        producer.flush()
    assert failed.value.code is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(KafkaError):
        producer.close()


def test_without_acknowledgement_or_idempotence_batches_arrive_too(client: Client, create: Create) -> None:
    topic = create()
    for partition, acks in enumerate((0, 1)):
        with client.producer(idempotent=False, acks=acks) as producer:
            for first in range(0, 100, 10):
                producer.send(topic, partition, batch(range(first, first + 10)))
        assert values(client.fetch(topic, partition, 0, 100)) == list(range(100))


def test_committed_offsets_come_back(client: Client, create: Create) -> None:
    topic = create()
    client.commit("g", {(topic, 0): CommittedOffset(5, 2, "here"), (topic, 1): CommittedOffset(7)})
    assert client.committed("g", [(topic, 0), (topic, 1), (topic, 2)]) == {
        (topic, 0): CommittedOffset(5, 2, "here"),
        (topic, 1): CommittedOffset(7),
    }
    assert client.committed("nobody", [(topic, 0)]) == {}


def test_a_leader_killed_while_it_is_written_to_and_read_from_costs_nothing(
    cluster: Cluster, client: Client, create: Create
) -> None:
    topic = create()
    count, step = 6000, 20
    with client.producer() as producer:
        for first in range(0, count, step):
            producer.send(topic, (first // step) % PARTITIONS, batch(range(first, first + step)))
            if first == count // 2:
                victim = leading(client, topic)
                cluster.kill(victim)
    cluster.start(victim)
    ends = client.list_offsets({(topic, n): LATEST for n in range(PARTITIONS)})
    cluster.wait_until_ready()
    found: list[int] = []
    killed = False
    for partition in range(PARTITIONS):
        parts = client.fetch(topic, partition, 0, ends[topic, partition].offset, max_bytes=2000)
        for number, part in enumerate(parts):
            found += values(iter([part]))
            if number == 3 and not killed:
                killed = True
                victim = leading(client, topic, partition)
                cluster.kill(victim)
    assert killed
    cluster.start(victim)
    assert sorted(found) == list(range(count)), "nothing is missing and nothing is there twice"
    for partition in range(PARTITIONS):
        mine = [n for n in found if (n // step) % PARTITIONS == partition]
        assert mine == sorted(mine), "and everything is in the order in which it was sent"


def leading(client: Client, topic: str, partition: int = 0) -> int:
    client.topics([topic])
    return client._cluster.view.topics[topic].partitions[partition][0]


def test_a_topic_that_no_broker_creates_is_waited_for_and_then_refused(cluster: Cluster) -> None:
    with (
        Client(cluster.bootstrap_servers, timeout_s=3.0) as client,
        pytest.raises(KafkaError, match="'nobody-makes-it' does not exist"),
    ):
        client.topics(["nobody-makes-it"], create=True)
