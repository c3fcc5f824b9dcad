"""AlterPartition as a handler: ISRs by version, stale senders, and clients that are not nodes."""

from __future__ import annotations

from typing import Any

import pytest
from apis.guarded import C_DENIED, CLUSTER, CONTROLLER, Guarded
from controller.cluster import create, epoch_of, leading, state_of
from controller.fakes import Harness

from heirlog.metadata.acls import AclOperation
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionRequest


@pytest.fixture
def harness() -> Harness:
    """Brokers 1 to 3, and a topic foo whose partition has all of them in the ISR."""
    harness = leading()
    create(harness)
    return harness


def asking(harness: Harness, isr: list[int], version: int, epochs: dict[int, int], **more: Any) -> Any:
    """A request of the leader for this ISR; epochs: those of brokers whose epoch it does not know."""
    state = state_of(harness)
    members = [
        AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=epochs.get(member, epoch_of(harness, member)))
        for member in isr
    ]
    values: dict[str, Any] = {"partition_index": 0, "leader_epoch": state.leader_epoch}
    values["partition_epoch"] = state.partition_epoch
    values |= {"new_isr_with_epochs": members} if version >= 3 else {"new_isr": isr}
    partition = AlterPartitionRequest.PartitionData(**(values | more))
    topic_id = harness.controller.image.topic_ids["foo"]
    request = AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=epoch_of(harness, state.leader),
        topics=[AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[partition])],
    )
    (answered,) = harness.ask("alter_partition", request, version).topics[0].partitions
    return answered


@pytest.mark.parametrize("version", [2, 3])
def test_the_leader_gets_the_isr_that_it_asks_for(harness: Harness, version: int) -> None:
    leader = state_of(harness).leader
    answered = asking(harness, [leader], version, {})
    assert (answered.error_code, answered.isr) == (ErrorCode.NONE, [leader])
    assert answered.partition_epoch == state_of(harness).partition_epoch
    assert state_of(harness).isr == (leader,)


def test_version_3_refuses_a_member_of_an_earlier_broker_epoch(harness: Harness) -> None:
    leader = state_of(harness).leader
    (other, *_) = {1, 2, 3} - {leader}
    asking(harness, [leader], 3, {})
    stale = {other: epoch_of(harness, other) - 1}
    assert asking(harness, [leader, other], 3, stale).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert asking(harness, [leader, other], 3, {}).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"partition_index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ({"new_isr_with_epochs": []}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_bad_proposal_is_refused(harness: Harness, change: dict[str, Any], code: ErrorCode) -> None:
    before = state_of(harness)
    assert asking(harness, [1, 2, 3], 3, {}, **change).error_code == code
    assert state_of(harness) == before


def test_a_sender_of_an_earlier_epoch_and_an_inactive_controller_refuse_the_whole_request(harness: Harness) -> None:
    stale = AlterPartitionRequest(broker_id=1, broker_epoch=epoch_of(harness, 1) - 1)
    assert harness.ask("alter_partition", stale, 3).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert Harness().ask("alter_partition", stale, 3).error_code == ErrorCode.NOT_CONTROLLER


def test_only_nodes_may_ask(node: Guarded) -> None:
    request = AlterPartitionRequest(broker_id=77)
    assert node.ask(request, listener=CONTROLLER).error_code == C_DENIED
    node.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    assert node.ask(request, listener=CONTROLLER).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert node.ask(request) is None, "brokers do not serve it"
