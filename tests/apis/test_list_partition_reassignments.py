"""ListPartitionReassignments as a handler: what is in progress, and clients without permission."""

from __future__ import annotations

from apis.guarded import C_DENIED, CLUSTER, Guarded
from controller.cluster import create, leading, state_of
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest


def listing(*topics: str) -> ListPartitionReassignmentsRequest:
    Topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    return ListPartitionReassignmentsRequest(topics=[Topic(name=name, partition_indexes=[0, 7]) for name in topics])


def test_only_partitions_that_move_are_listed_by_name_or_all_of_them() -> None:
    harness = leading()
    create(harness, factor=2)
    create(harness, "bar", factor=2)
    everything = ListPartitionReassignmentsRequest(topics=None)
    assert harness.ask("list_partition_reassignments", everything, 0).topics == []
    (absent,) = {1, 2, 3} - set(state_of(harness).replicas)
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=[absent])
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="foo", partitions=[partition])
    harness.ask("alter_partition_reassignments", AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    for request in (everything, listing("foo", "bar", "none")):
        (found,) = harness.ask("list_partition_reassignments", request, 0).topics
        (moving,) = found.partitions
        assert (found.name, moving.partition_index, moving.adding_replicas) == ("foo", 0, [absent])
        assert set(moving.removing_replicas) == {1, 2, 3} - {absent}
    assert harness.ask("list_partition_reassignments", listing("bar"), 0).topics == []


def test_a_controller_that_is_not_active_refuses() -> None:
    answer = Harness().ask("list_partition_reassignments", listing("foo"), 0)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER and answer.error_message


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    assert node.ask(listing("t")).error_code == C_DENIED
    node.allow(AclOperation.DESCRIBE, CLUSTER)
    assert node.ask(listing("t")).error_code == ErrorCode.NONE
