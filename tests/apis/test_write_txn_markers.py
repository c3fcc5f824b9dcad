"""WriteTxnMarkers through a node: what is written, what is refused for each partition, and who may send it."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded

from heirlog.metadata.acls import CLUSTER_NAME, AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest, FindCoordinatorRequest, WriteTxnMarkersRequest


def ending(
    *topics: str,
    producer_id: int = 77,
    epoch: int = 3,
    coordinator_epoch: int = 5,
    version: int = 0,
    commit: bool = False,
    partitions: tuple[int, ...] = (0,),
) -> WriteTxnMarkersRequest:
    Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[Topic(name=name, partition_indexes=list(partitions)) for name in topics],
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
    )
    return WriteTxnMarkersRequest(markers=[marker])


EXAMPLE = ending("t"), None


def codes(answer: Any) -> dict[str, list[ErrorCode]]:
    (marker,) = answer.markers
    return {topic.name: [ErrorCode(part.error_code) for part in topic.partitions] for topic in marker.topics}


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_is_written_and_the_partition_remembers_who_sent_it(node: Guarded, version: int) -> None:
    name = f"marked-{version}"
    node.create_topics(name)
    assert codes(node.ask(ending(name), version, ADMIN)) == {name: [ErrorCode.NONE]}
    topics = [DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])]
    described = node.ask(DescribeProducersRequest(topics=topics), principal=ADMIN)
    (producer,) = described.topics[0].partitions[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.coordinator_epoch) == (77, 3, 5)


def test_older_producers_and_coordinators_are_fenced(node: Guarded) -> None:
    node.create_topics("fenced")
    node.ask(ending("fenced"), principal=ADMIN)
    fenced, zombie = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert codes(node.ask(ending("fenced", epoch=2), principal=ADMIN)) == {"fenced": [fenced]}
    assert codes(node.ask(ending("fenced", coordinator_epoch=4), principal=ADMIN)) == {"fenced": [zombie]}
    assert codes(node.ask(ending("fenced", version=2), principal=ADMIN)) == {"fenced": [ErrorCode.NONE]}, "a repeat"
    assert codes(node.ask(ending("fenced", epoch=4, version=2), principal=ADMIN)) == {"fenced": [ErrorCode.NONE]}


def test_each_partition_has_its_own_result(node: Guarded) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = codes(node.ask(ending("t", "none", partitions=(0, 9)), principal=ADMIN))
    assert found == {"t": [ErrorCode.NONE, unknown], "none": [unknown, unknown]}
    assert codes(node.ask(ending("t", producer_id=-1), principal=ADMIN)) == {"t": [ErrorCode.INVALID_REQUEST]}
    assert node.ask(WriteTxnMarkersRequest(), principal=ADMIN).markers == []


def test_a_marker_for_offsets_is_written_by_the_coordinator_of_their_groups(node: Guarded) -> None:
    node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4, ADMIN)
    node.wait(lambda: "__consumer_offsets" in node.node.image.topic_ids)
    written = {"__consumer_offsets": [ErrorCode.NONE]}
    node.wait(lambda: codes(node.ask(ending("__consumer_offsets", commit=True), principal=ADMIN)) == written)
    elsewhere = {"__consumer_offsets": [ErrorCode.NOT_LEADER_OR_FOLLOWER]}
    assert codes(node.ask(ending("__consumer_offsets", partitions=(7,)), principal=ADMIN)) == elsewhere


@pytest.mark.parametrize("operation", [AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
def test_either_permission_on_the_cluster_is_enough(node: Guarded, operation: AclOperation) -> None:
    assert codes(node.ask(ending("t"))) == {"t": [C_DENIED]}
    node.allow(operation, CLUSTER, CLUSTER_NAME)
    assert codes(node.ask(ending("t"))) == {"t": [ErrorCode.NONE]}


def test_what_is_named_twice_has_one_result_and_a_marker_without_partitions_none(node: Guarded) -> None:
    node.create_topics("twice")
    request = ending("twice", partitions=(0, 0, 9))
    request.markers += ending("twice").markers + ending(producer_id=78).markers
    (marker,) = node.ask(request, principal=ADMIN).markers
    assert marker.producer_id == 77
    assert [(part.partition_index, part.error_code) for part in marker.topics[0].partitions] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_negative_producer_id_or_epoch_is_refused(node: Guarded) -> None:
    node.create_topics("negative")
    for request in (ending("negative", producer_id=-1), ending("negative", epoch=-2)):
        assert codes(node.ask(request, principal=ADMIN)) == {"negative": [ErrorCode.INVALID_REQUEST]}
