"""DeleteShareGroupState through a node: what it forgets, and who may send it."""

from __future__ import annotations

from apis.guarded import ADMIN, C_DENIED, CLUSTER, Guarded
from apis.shares import NO_TOPIC, begin, code, coordinate_shares, writing

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteShareGroupStateRequest


def deleting(topic: bytes, group: str = "g") -> DeleteShareGroupStateRequest:
    R = DeleteShareGroupStateRequest
    asked = R.PartitionData(partition=0)
    return R(group_id=group, topics=[R.DeleteStateData(topic_id=topic, partitions=[asked])])


EXAMPLE = deleting(NO_TOPIC), None


def test_a_deleted_state_is_unknown_and_deleting_it_again_succeeds(node: Guarded) -> None:
    topic = coordinate_shares(node)
    begin(node, topic, "del")
    for _ in range(2):
        assert code(node.ask(deleting(topic, "del"), principal=ADMIN)) is ErrorCode.NONE
        assert code(node.ask(writing(topic, "del"), principal=ADMIN)) is ErrorCode.INVALID_REQUEST


def test_the_state_of_a_topic_that_is_gone_can_be_deleted(node: Guarded) -> None:
    coordinate_shares(node)
    assert code(node.ask(deleting(NO_TOPIC), principal=ADMIN)) is ErrorCode.NONE


def test_a_partition_that_is_named_twice_is_answered_once(node: Guarded) -> None:
    request = deleting(coordinate_shares(node), "twice")
    request.topics[0].partitions *= 2
    request.topics *= 2
    (topic,) = node.ask(request, principal=ADMIN).results
    assert [part.error_code for part in topic.partitions] == [ErrorCode.NONE]


def test_only_brokers_may_send_it(node: Guarded) -> None:
    topic = coordinate_shares(node)
    assert code(node.ask(deleting(topic, "denied"))) is C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert code(node.ask(deleting(topic, "denied"))) is ErrorCode.NONE
