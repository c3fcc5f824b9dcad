"""AlterPartitionReassignments as a handler: targets, the factor of version 1, and clients without permission."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import C_DENIED, CLUSTER, Guarded
from controller.cluster import create, leading, state_of
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionReassignmentsRequest


def moving(replicas: list[int] | None, topic: str = "foo", **more: Any) -> AlterPartitionReassignmentsRequest:
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=replicas)
    asked = AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[partition])
    return AlterPartitionReassignmentsRequest(topics=[asked], **more)


def outcome(answer: Any) -> tuple[int, str | None]:
    (partition,) = answer.responses[0].partitions
    return partition.error_code, partition.error_message


@pytest.fixture
def harness() -> Harness:
    """Brokers 1 to 3, and a topic foo of one partition with two replicas."""
    harness = leading()
    create(harness, factor=2)
    return harness


@pytest.mark.parametrize("version", [0, 1])
def test_a_reassignment_starts_and_null_cancels_it(harness: Harness, version: int) -> None:
    (absent,) = {1, 2, 3} - set(state_of(harness).replicas)
    stays = state_of(harness).leader
    assert outcome(harness.ask("alter_partition_reassignments", moving([absent, stays]), version)) == (0, None)
    assert state_of(harness).adding == (absent,)
    assert outcome(harness.ask("alter_partition_reassignments", moving(None), version)) == (0, None)
    assert absent not in state_of(harness).replicas
    code, _ = outcome(harness.ask("alter_partition_reassignments", moving(None), version))
    assert code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_version_1_may_forbid_another_replication_factor(harness: Harness) -> None:
    request = moving([1, 2, 3], allow_replication_factor_change=False)
    code, message = outcome(harness.ask("alter_partition_reassignments", request, 1))
    assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "from 2 to 3, which the request forbids" in (message or "")
    assert outcome(harness.ask("alter_partition_reassignments", moving([1, 2, 3]), 1)) == (0, None)


@pytest.mark.parametrize(
    ("replicas", "topic", "code"),
    [
        ([9, 1], "foo", ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], "foo", ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([], "foo", ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_bad_targets_are_refused_with_a_message(
    harness: Harness, replicas: list[int], topic: str, code: ErrorCode
) -> None:
    found, message = outcome(harness.ask("alter_partition_reassignments", moving(replicas, topic), 1))
    assert found == code and message


def test_a_controller_that_is_not_active_refuses_the_whole_request() -> None:
    answer = Harness().ask("alter_partition_reassignments", moving([1]), 1)
    assert (answer.error_code, answer.responses) == (ErrorCode.NOT_CONTROLLER, [])


def test_the_cluster_must_allow_it(node: Guarded) -> None:
    refused = node.ask(moving([1], "t"))
    assert (refused.error_code, refused.responses) == (C_DENIED, [])
    node.allow(AclOperation.ALTER, CLUSTER)
    assert outcome(node.ask(moving([1], "t"))) == (0, None)
