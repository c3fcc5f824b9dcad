"""What lies where, how large it is, and which directory has failed."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeLogDirsRequest

from .fakes import Rig, batch, state


def ask(rig: Rig, wanted: dict[str, list[int]] | None = None) -> Any:
    topics = None
    if wanted is not None:
        topics = [
            DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=indexes)
            for topic, indexes in wanted.items()
        ]
    return rig.broker.describe_log_dirs(DescribeLogDirsRequest(topics=topics))


def found(response: Any) -> list[tuple[str, str, int]]:
    return [
        (result.log_dir, topic.name, partition.partition_index)
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    ]


@pytest.fixture
def rig() -> Rig:
    """Two directories, with foo-0, foo-1 and bar-0 in them."""
    rig = Rig(log_dirs="/data,/more").started()
    for topic, index in (("foo", 0), ("foo", 1), ("bar", 0)):
        rig.show(state([1]), topic, index)
    return rig


def test_all_partitions_are_listed_with_their_size(rig: Rig) -> None:
    rig.produce(1, batch(3))
    response = ask(rig)
    assert [result.log_dir for result in response.results] == ["/data", "/more"]
    assert sorted((topic, index) for _, topic, index in found(response)) == [("bar", 0), ("foo", 0), ("foo", 1)]
    sizes = {
        (topic.name, partition.partition_index): (partition.partition_size, partition.offset_lag)
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    }
    assert sizes == {("foo", 0): (len(batch(3)), 0), ("foo", 1): (0, 0), ("bar", 0): (0, 0)}
    assert all(result.total_bytes >= result.usable_bytes > 0 for result in response.results)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"foo": [1]}, {("foo", 1)}),
        ({"foo": [0, 7], "nowhere": [0]}, {("foo", 0)}),
        ({"foo": []}, set()),
        ({}, set()),
    ],
)
def test_only_what_was_asked_for_is_listed(
    rig: Rig, wanted: dict[str, list[int]], expected: set[tuple[str, int]]
) -> None:
    response = ask(rig, wanted)
    assert {(topic, index) for _, topic, index in found(response)} == expected
    assert len(response.results) == 2


def test_a_directory_that_failed_is_listed_without_partitions(rig: Rig) -> None:
    rig.broker.replicas.directories.failed(rig.directories[0], OSError("EIO"))
    failed, other = ask(rig).results
    assert (failed.error_code, failed.topics, failed.total_bytes) == (ErrorCode.KAFKA_STORAGE_ERROR, [], -1)
    assert other.error_code == ErrorCode.NONE
