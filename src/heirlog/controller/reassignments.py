"""ListPartitionReassignments: the partitions on their way to other replicas (KIP-455).

A partition is being reassigned while it has adding or removing replicas. A null list asks for all of them; topics and
partitions that are unknown or rest are left out, without an error.

Source: KIP-455.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heirlog.metadata.image import Image
from heirlog.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
Partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def list_reassignments(image: Image, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    asked: Iterable[tuple[str, list[int] | None]]
    if request.topics is None:
        asked = [(name, None) for name in sorted(image.topic_ids)]
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = [Topic(name=name, partitions=list(_ongoing(image, name, indexes))) for name, indexes in asked]
    return ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def _ongoing(image: Image, name: str, indexes: list[int] | None) -> Iterator[Partition]:
    """indexes: None for all of them."""
    topic_id = image.topic_ids.get(name)
    if topic_id is None:
        return
    states = image.partitions[topic_id]
    for index in sorted(states) if indexes is None else indexes:
        state = states.get(index)
        if state is not None and (state.adding or state.removing):
            yield Partition(
                partition_index=index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding),
                removing_replicas=list(state.removing),
            )
