"""What partitions add up to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heirlog.metadata.apply import apply_all
from heirlog.metadata.config_def import parse_static
from heirlog.metadata.image import Image
from heirlog.metadata.partition_counts import PartitionCounts, count_partitions
from heirlog.metadata.survey import AT_A_TIME, at_once, in_groups
from heirlog.protocol.records import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

STATIC = parse_static(
    {
        "process.roles": "controller",
        "node.id": "100",
        "listeners": "C://localhost:1",
        "controller.listener.names": "C",
        "controller.quorum.voters": "100@localhost:1",
        "min.insync.replicas": "2",
    }
)
FIRST, SECOND = bytes(15) + b"a", bytes(15) + b"b"


def partition(
    topic: bytes, index: int, leader: int, isr: Sequence[int], elr: Sequence[int] | None = None
) -> PartitionRecord:
    return PartitionRecord(
        topic_id=topic,
        partition_id=index,
        replicas=[1, 2, 3],
        isr=[*isr],
        leader=leader,
        leader_epoch=1,
        partition_epoch=1,
        eligible_leader_replicas=None if elr is None else [*elr],
    )


def image_of(*records: object) -> Image:
    image = Image()
    apply_all(image, records, 0, 1)
    return image


def test_partitions_are_counted_by_what_they_lack() -> None:
    image = image_of(
        TopicRecord(name="t", topic_id=FIRST),
        partition(FIRST, 0, 1, (1, 2, 3)),
        partition(FIRST, 1, 2, (2, 3)),
        partition(FIRST, 2, 1, (1,), (2,)),
        partition(FIRST, 3, -1, (), (3,)),
        partition(FIRST, 4, -1, ()),
        TopicRecord(name="one", topic_id=SECOND),
        ConfigRecord(resource_type=2, resource_name="one", name="min.insync.replicas", value="1"),
        partition(SECOND, 0, 3, (3,)),
    )
    assert at_once(count_partitions(image, STATIC)) == PartitionCounts(
        topics=2,
        partitions=6,
        offline=2,
        preferred_imbalance=4,
        under_min_isr=3,
        electable_replicas=9,
    )


def test_what_goes_while_it_is_counted_breaks_nothing() -> None:
    topics = [bytes(12) + number.to_bytes(4, "big") for number in range(1, 3 * AT_A_TIME)]
    records = [TopicRecord(name=f"t{number}", topic_id=topic) for number, topic in enumerate(topics)]
    image = image_of(*records, *(partition(topic, 0, 1, (1, 2, 3)) for topic in topics))
    survey = count_partitions(image, STATIC)
    next(survey)
    apply_all(image, [RemoveTopicRecord(topic_id=topic) for topic in topics], 10_000, 1)
    partition_counts = at_once(survey)
    assert AT_A_TIME <= partition_counts.partitions < len(topics)


@pytest.mark.parametrize("count", [0, 1, AT_A_TIME, AT_A_TIME + 1, 5 * AT_A_TIME])
def test_groups_hold_everything_once_and_no_more_than_may_be_looked_at_at_a_time(count: int) -> None:
    groups = list(in_groups(range(count)))
    assert [number for group in groups for number in group] == list(range(count))
    assert all(0 < len(group) <= AT_A_TIME for group in groups)
