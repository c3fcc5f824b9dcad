"""ReadShareGroupStateSummary through a node: versions, what is not known, and who may send it."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.shares import NO_TOPIC, begin, code, coordinate_shares, initializing, writing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import ReadShareGroupStateSummaryRequest


def summarizing(topic: bytes, group: str = "g") -> ReadShareGroupStateSummaryRequest:
    R = ReadShareGroupStateSummaryRequest
    asked = R.PartitionData(partition=0, leader_epoch=0)
    return R(group_id=group, topics=[R.ReadStateSummaryData(topic_id=topic, partitions=[asked])])


EXAMPLE = summarizing(NO_TOPIC), None


def test_version_1_says_how_many_records_need_no_delivery_any_more(node: Guarded) -> None:
    topic = coordinate_shares(node)
    begin(node, topic, "sum")
    node.ask(writing(topic, "sum"), principal=ADMIN)
    for version, count in ((0, -1), (1, 3)):
        (found,) = node.ask(summarizing(topic, "sum"), version, ADMIN).results[0].partitions
        assert (found.start_offset, found.leader_epoch, found.state_epoch) == (5, 2, 1)
        assert found.delivery_complete_count == count


def test_a_state_that_no_leader_has_read_has_no_leader_epoch(node: Guarded) -> None:
    topic = coordinate_shares(node)
    node.ask(initializing(topic, "unread"), principal=ADMIN)
    (found,) = node.ask(summarizing(topic, "unread"), principal=ADMIN).results[0].partitions
    assert (found.start_offset, found.leader_epoch, found.state_epoch) == (5, -1, 1)


def test_a_state_that_does_not_exist_has_no_start_offset(node: Guarded) -> None:
    topic = coordinate_shares(node)
    (found,) = node.ask(summarizing(topic, "none"), principal=ADMIN).results[0].partitions
    assert (found.error_code, found.start_offset) == (ErrorCode.NONE, -1)
    assert code(node.ask(summarizing(NO_TOPIC), principal=ADMIN)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_brokers_may_send_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(summarizing(topic))) is C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert code(node.ask(summarizing(topic))) is ErrorCode.NONE
