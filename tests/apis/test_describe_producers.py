"""DescribeProducers through a node: what partitions remember of producers, and topics without permission."""

from __future__ import annotations

from typing import Any

from apis.guarded import ADMIN, T_DENIED, TOPIC, Guarded

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.batch import encode_batch
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DescribeProducersRequest, ProduceRequest


def asking(*topics: str, partitions: tuple[int, ...] = (0,)) -> DescribeProducersRequest:
    Topic = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(topics=[Topic(name=name, partition_indexes=list(partitions)) for name in topics])


EXAMPLE = asking("t"), None


def codes(answer: Any) -> dict[str, list[int]]:
    return {topic.name: [part.error_code for part in topic.partitions] for topic in answer.topics}


def test_an_idempotent_producer_is_described_with_its_last_sequence(node: Guarded) -> None:
    records = encode_batch([(b"k", b"v", (), 0)] * 3, producer_id=77, producer_epoch=2, base_sequence=0)
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    node.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 12, ADMIN)
    (partition,) = node.ask(asking("t"), principal=ADMIN).topics[0].partitions
    (producer,) = partition.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (77, 2, 2)
    assert producer.current_txn_start_offset == -1


def test_unknown_partitions_are_refused_one_by_one(node: Guarded) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(node.ask(asking("t", "none", partitions=(0, 9)), principal=ADMIN)) == {
        "t": [ErrorCode.NONE, unknown],
        "none": [unknown, unknown],
    }


def test_topics_that_must_not_be_read_are_refused_with_a_message(node: Guarded) -> None:
    node.allow(AclOperation.READ, TOPIC, "t")
    node.allow(AclOperation.DESCRIBE, TOPIC, "hidden")
    answer = node.ask(asking("hidden", "t", "none"))
    assert codes(answer) == {"t": [0], "hidden": [T_DENIED], "none": [T_DENIED]}
    assert "an ACL on the topic must allow this" in answer.topics[-1].partitions[0].error_message
