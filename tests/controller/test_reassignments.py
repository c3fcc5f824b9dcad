"""ListPartitionReassignments: which partitions are on their way to other replicas."""

from __future__ import annotations

from typing import Any

from controller.cluster import create, leading
from controller.fakes import Harness

from heirlog.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from heirlog.protocol.records import PartitionChangeRecord

Topics = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


def listed(harness: Harness, topics: list[Any] | None) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    request = ListPartitionReassignmentsRequest(topics=topics)
    return [
        (topic.name, found.partition_index, found.replicas, found.adding_replicas, found.removing_replicas)
        for topic in harness.ask("list_partition_reassignments", request, 0).topics
        for found in topic.partitions
    ]


def test_only_partitions_with_adding_or_removing_replicas_are_listed() -> None:
    harness = leading(brokers=4)
    create(harness, "rests")
    create(harness, "moves", 3)
    image = harness.controller.image
    moving = PartitionChangeRecord(
        topic_id=image.topic_ids["moves"], partition_id=1, replicas=[1, 2, 3, 4], adding_replicas=[4]
    )
    leaving = PartitionChangeRecord(topic_id=image.topic_ids["moves"], partition_id=2, removing_replicas=[1])
    image.apply_all([moving, leaving], image.offset + 1, image.epoch)
    replicas = list(image.partitions[image.topic_ids["moves"]][2].replicas)
    both = [("moves", 1, [1, 2, 3, 4], [4], []), ("moves", 2, replicas, [], [1])]
    assert listed(harness, None) == both
    asked = [Topics(name="moves", partition_indexes=[0, 2, 9]), Topics(name="nowhere", partition_indexes=[0])]
    assert listed(harness, asked) == both[1:]
    assert listed(harness, []) == []
