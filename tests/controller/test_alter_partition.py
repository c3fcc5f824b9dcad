"""AlterPartition beyond the catalogue: the guards, and several partitions of one request."""

from __future__ import annotations

import pytest
from controller.cluster import alter, create, epoch_of, leading, state_of

from heirlog.controller import alter_partition
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import AlterPartitionRequest

Member = AlterPartitionRequest.BrokerState


def test_guard_6_refuses_a_member_with_the_epoch_of_a_previous_life() -> None:
    harness = leading()
    create(harness)
    leader = int(state_of(harness).leader)
    follower = min({1, 2, 3} - {leader})
    members = [
        Member(broker_id=leader, broker_epoch=epoch_of(harness, leader)),
        Member(broker_id=follower, broker_epoch=epoch_of(harness, follower) - 1),
    ]
    assert alter(harness, [], new_isr_with_epochs=members).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_without_guard_6_it_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = leading()
    create(harness)
    leader = int(state_of(harness).leader)
    follower = min({1, 2, 3} - {leader})
    harness.controller.expire_session(follower, "gone")  # type: ignore[arg-type]
    harness.commit()
    assert alter(harness, [leader, follower]).error_code == ErrorCode.INELIGIBLE_REPLICA
    monkeypatch.setattr(alter_partition, "member_is_eligible", lambda *_: True)
    assert alter(harness, [leader, follower]).error_code == ErrorCode.NONE


def test_guard_7_refuses_a_request_decided_on_an_older_record() -> None:
    harness = leading()
    create(harness)
    state = state_of(harness)
    alter(harness, [int(state.leader)])
    late = alter(harness, list(state.isr), partition_epoch=state.partition_epoch)
    assert late.error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_a_partition_named_twice_is_changed_once() -> None:
    harness = leading()
    create(harness)
    state, image = state_of(harness), harness.controller.image
    leader = int(state.leader)
    asked = AlterPartitionRequest.PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[Member(broker_id=leader, broker_epoch=epoch_of(harness, leader))],
    )
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=epoch_of(harness, leader),
        topics=[AlterPartitionRequest.TopicData(topic_id=image.topic_ids["foo"], partitions=[asked, asked])],
    )
    (topic,) = harness.ask("alter_partition", request, 3).topics
    assert [row.error_code for row in topic.partitions] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert state_of(harness).partition_epoch == state.partition_epoch + 1
