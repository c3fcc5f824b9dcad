"""Tasks of equal bytes: the arithmetic, and what a real topic's batches say."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spark.topics import Topics

from heirlog.blocking import Client
from heirlog.spark import sizes
from heirlog.spark.decode import arrow_schema
from heirlog.spark.options import read_options
from heirlog.spark.plan import Range
from heirlog.spark.sizes import Sections, split_by_bytes
from heirlog.spark.source import HeirlogReader, spark_schema
from heirlog.spark.stream import HeirlogStreamReader
from heirlog.testing.cluster import Cluster

COLUMNS = ("partition", "offset", "value")
LARGE, SMALL = 10_000, 100


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)


@pytest.fixture(scope="module")
def skewed(topics: Topics) -> str:
    """400 small records and then 100 large ones, in batches of at most 20 KB; of partition 1 only small ones."""
    topic = topics.create(2)
    config = {"batch.size": 20_000, "batch.num.messages": 20}
    for partition, value_bytes, count in ((0, SMALL, 400), (0, LARGE, 100), (1, SMALL, 500)):
        values = ({"value": os.urandom(value_bytes), "partition": partition} for _ in range(count))
        topics.produce(topic, values, **config)
    return topic


def of(size: int, *density: float | None, partition: int = 0) -> Sections:
    begins = tuple(10 + size * number // len(density) for number in range(len(density)))
    return Sections(Range("t", partition, 10, 10 + size, last_epoch=3), begins, density)


def parts(found: list[Range]) -> list[tuple[int, int]]:
    return [(one.start, one.stop) for one in found]


def test_a_range_is_cut_where_the_bytes_say() -> None:
    # 100 offsets of a byte each, then 100 of three
    assert parts(split_by_bytes([of(200, 1.0, 3.0)], 100)) == [(10, 110), (110, 143), (143, 177), (177, 210)]


def test_enough_tasks_are_made_of_the_partitions_with_most_bytes() -> None:
    sections = [of(100, 9.0), of(100, 1.0, partition=1)]
    found = split_by_bytes(sections, 10_000, min_partitions=10)
    assert [one.partition for one in found] == [0] * 9 + [1]


def test_what_is_not_known_counts_as_the_rest_does() -> None:
    assert len(split_by_bytes([of(100, 2.0, None), of(100, None, partition=1)], 100)) == 4
    assert parts(split_by_bytes([of(100, None)], 1000)) == [(10, 110)]


def test_only_the_first_part_knows_the_epoch_of_the_record_before_it() -> None:
    assert [one.last_epoch for one in split_by_bytes([of(100, 1.0)], 50)] == [3, -1]


@settings(deadline=None)
@example([(100, [5e-324])], 10, 5)
@given(
    st.lists(
        st.tuples(st.integers(1, 5000), st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=16)),
        max_size=5,
    ),
    st.integers(1, 10**7),
    st.one_of(st.none(), st.integers(1, 60)),
)
def test_the_parts_are_the_ranges_however_they_are_cut(
    given_sections: list[tuple[int, list[float | None]]], max_bytes: int, min_partitions: int | None
) -> None:
    sections = [of(size, *density, partition=at) for at, (size, density) in enumerate(given_sections)]
    found = split_by_bytes(sections, max_bytes, min_partitions)
    for one in sections:
        own = [part for part in found if part.partition == one.range.partition]
        assert [part.start for part in own] == [10, *(part.stop for part in own)][:-1]
        assert own[-1].stop == one.range.stop
    assert all(part.size for part in found)


def bytes_of(topics: Topics, topic: str, tasks: list[Range]) -> list[int]:
    with Client(topics.servers) as client:
        return [
            sum(len(part.records) for part in client.fetch(topic, one.partition, one.start, one.stop)) for one in tasks
        ]


@pytest.mark.parametrize("streaming", [False, True])
def test_the_tasks_of_a_skewed_topic_have_about_the_same_bytes(topics: Topics, skewed: str, streaming: bool) -> None:
    given_options = {
        "kafka.bootstrap.servers": topics.servers,
        "subscribe": skewed,
        "startingOffsets": "earliest",
        "maxBytesPerPartition": "150000",
    }
    options = read_options(given_options, streaming=streaming)
    planned: list[Any]
    if streaming:
        stream = HeirlogStreamReader(options, arrow_schema(COLUMNS))
        start = stream.initialOffset()
        planned = list(stream.partitions(start, stream.latestOffset(start, stream.getDefaultReadLimit())))
    else:
        planned = HeirlogReader(options, spark_schema(COLUMNS)).partitions()
    tasks = [one.value for one in planned]
    # whole batches are fetched, so a task may fetch one more than it has
    assert max(bytes_of(topics, skewed, tasks)) < 250_000
    assert 8 <= len(tasks) <= 12
    # by offsets the two halves of partition 0 would have 20 kB and 1 MB
    assert sum(one.size for one in tasks) == 1000
    assert min(one.size for one in tasks) < 30, "the large records are in short tasks"


def test_large_records_are_found_although_they_are_few_offsets(topics: Topics) -> None:
    """Half of a hundredth of the offsets, at the end, have most of the bytes: between two of the first probes."""
    topic = topics.create(1)
    for value_bytes, count in ((10, 4000), (LARGE, 20)):
        values = [{"value": os.urandom(value_bytes)} for _ in range(count)]
        topics.produce(topic, values, **{"batch.num.messages": 100, "batch.size": 20_000})
    given_options = {"kafka.bootstrap.servers": topics.servers, "subscribe": topic, "maxBytesPerPartition": "60000"}
    read = read_options(given_options, streaming=False)
    tasks = [one.value for one in HeirlogReader(read, spark_schema(COLUMNS)).partitions()]
    # a task may fetch a batch more than it has
    assert max(bytes_of(topics, topic, tasks)) < 100_000
    assert (tasks[0].start, tasks[-1].stop) == (0, 4020)


def test_a_partition_that_does_not_answer_is_read_all_the_same(topics: Topics, skewed: str) -> None:
    options = read_options(
        {"kafka.bootstrap.servers": topics.servers, "subscribe": skewed, "maxBytesPerPartition": "1000"},
        streaming=False,
    )
    gone = Range(skewed, 0, 10_000, 10_100)
    assert parts(sizes.tasks(options, [gone])) == [(10_000, 10_100)]
