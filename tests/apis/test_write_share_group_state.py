"""WriteShareGroupState through a node: versions, what is refused, and who may send it."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.shares import NO_TOPIC, begin, code, coordinate_shares, initializing, reading, writing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ReadShareGroupStateSummaryRequest

EXAMPLE = writing(NO_TOPIC), None


def test_version_1_says_how_many_records_need_no_delivery_any_more(node: Guarded) -> None:
    topic = coordinate_shares(node)
    R = ReadShareGroupStateSummaryRequest
    asked = [R.ReadStateSummaryData(topic_id=topic, partitions=[R.PartitionData(partition=0, leader_epoch=2)])]
    for version, count in ((0, -1), (1, 3)):
        group = f"written-{version}"
        begin(node, topic, group)
        assert code(node.ask(writing(topic, group), version, ADMIN)) is ErrorCode.NONE
        answer = node.ask(R(group_id=group, topics=asked), principal=ADMIN)
        assert answer.results[0].partitions[0].delivery_complete_count == count


def test_what_was_not_initialized_is_not_written(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(writing(topic, "none"), principal=ADMIN)) is ErrorCode.INVALID_REQUEST
    node.ask(initializing(topic, "fenced", epoch=2), principal=ADMIN)
    node.ask(reading(topic, "fenced"), principal=ADMIN)
    assert code(node.ask(writing(topic, "fenced"), principal=ADMIN)) is ErrorCode.FENCED_STATE_EPOCH


def test_a_leader_that_has_not_read_the_state_does_not_write_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    node.ask(initializing(topic, "again"), principal=ADMIN)
    assert code(node.ask(writing(topic, "again"), principal=ADMIN)) is ErrorCode.FENCED_STATE_EPOCH
    node.ask(reading(topic, "again"), principal=ADMIN)
    assert code(node.ask(writing(topic, "again"), principal=ADMIN)) is ErrorCode.NONE


def test_only_brokers_may_send_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    begin(node, topic, "denied")
    assert code(node.ask(writing(topic, "denied"))) is C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert code(node.ask(writing(topic, "denied"))) is ErrorCode.NONE
