"""What an operator is told about a leaderless partition: who would win, and at what price."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.client.call import Ask, Conversation
from heirlog.client.recovery import Choice, Described, choices, describe_recovery
from heirlog.protocol.errors import ErrorCode, KafkaError
from heirlog.protocol.messages import DescribeRecoveryResponse

LEADER_EPOCH = 8

Replica = DescribeRecoveryResponse.ReplicaReport
Partition = DescribeRecoveryResponse.RecoveryPartition
Topic = DescribeRecoveryResponse.RecoveryTopic


def said(broker: int, epoch: int, end: int, **more: Any) -> Replica:
    fields: dict[str, Any] = {
        "is_registered": True,
        "is_acceptable": True,
        "serves_recovery": True,
        "is_valid": True,
        "answer_age_ms": 10,
        "broker_epoch": 100 + broker,
        "current_leader_epoch": LEADER_EPOCH,
        "last_written_leader_epoch": epoch,
        "log_end_offset": end,
    }
    return Replica(broker_id=broker, **{**fields, **more})


def fenced(broker: int) -> Replica:
    return Replica(broker_id=broker, is_registered=True, is_fenced=True)


def partition(*replicas: Replica, **more: Any) -> Partition:
    return Partition(
        partition_index=0,
        leader_epoch=LEADER_EPOCH,
        replica_nodes=[replica.broker_id for replica in replicas],
        replicas=list(replicas),
        **more,
    )


def choice(found: Partition, name: str, leader: int | None = None) -> Choice:
    return next(each for each in choices(found) if each.name == name and (leader is None or each.leader == leader))


def price(found: Choice) -> tuple[int | None, int | None, bool]:
    return found.leader, found.loss.records_max, found.loss.is_exact


def test_the_longest_log_of_the_newest_epoch_wins_and_costs_nothing_where_all_have_answered() -> None:
    found = partition(said(1, 5, 300), said(2, 6, 200), said(3, 6, 250), quorum=[1, 2, 3])
    assert price(choice(found, "balanced")) == (3, 0, True)
    assert price(choice(found, "aggressive")) == (3, 0, True)
    assert price(choice(found, "unclean")) == (1, 250, False)
    assert price(choice(found, "designation", 2)) == (2, 50, True)


def test_equal_logs_are_decided_by_the_assignment() -> None:
    assert choice(partition(said(3, 5, 9), said(1, 5, 9)), "aggressive").leader == 3


def test_balanced_names_whom_it_waits_for_and_aggressive_what_it_would_risk() -> None:
    found = partition(said(1, 5, 300), fenced(2), quorum=[1, 2])
    assert choice(found, "balanced").waits_for == (2,)
    assert price(choice(found, "aggressive")) == (1, None, False)
    assert choice(found, "aggressive").loss.silent == (2,)


def test_what_a_replica_said_before_its_restart_limits_what_it_can_hold() -> None:
    found = partition(said(1, 5, 300), said(2, 5, 340, is_valid=False, is_acceptable=False), quorum=[1, 2])
    assert price(choice(found, "aggressive")) == (1, 40, False)
    assert choice(found, "balanced").waits_for == (2,)


@pytest.mark.parametrize("more", [{"current_leader_epoch": LEADER_EPOCH - 1}, {"error_code": 56}])
def test_an_answer_of_an_older_leader_epoch_or_an_error_limits_nothing(more: dict[str, int]) -> None:
    found = partition(said(1, 5, 300), said(2, 5, 340, is_valid=False, is_acceptable=False, **more))
    assert choice(found, "aggressive").loss.records_max is None


def test_a_live_eligible_replica_is_a_clean_choice() -> None:
    found = partition(said(1, 5, 300), said(2, 5, 200), eligible_leader_replicas=[2], quorum=[])
    assert price(choice(found, "balanced")) == (2, 0, True)
    assert price(choice(found, "unclean")) == (2, 0, True)
    assert price(choice(found, "designation", 2)) == (2, 0, True)


def test_balanced_waits_for_an_eligible_replica_that_is_away_and_aggressive_does_not() -> None:
    found = partition(said(1, 5, 300), fenced(2), eligible_leader_replicas=[2], quorum=[1, 2])
    balanced = choice(found, "balanced")
    assert (balanced.leader, balanced.waits_for, balanced.waits_for_one) == (None, (2,), True)
    assert price(choice(found, "aggressive")) == (1, None, False)


def test_without_the_manager_only_an_unclean_election_can_be_asked_for() -> None:
    found = partition(said(1, 5, 300), said(2, 5, 200), last_known_elr=[2])
    (only,) = choices(found, manager_enabled=False)
    assert only.name == "unclean" and price(only) == (2, 100, True)
    assert choice(found, "unclean").leader == 1


def test_without_anybody_who_can_lead_there_is_no_choice() -> None:
    found = partition(fenced(1), fenced(2), quorum=[1, 2])
    assert [(each.name, each.leader) for each in choices(found)] == [
        ("balanced", None),
        ("aggressive", None),
        ("unclean", None),
    ]


def test_a_replica_that_cannot_lead_wins_nothing_and_its_records_count() -> None:
    found = partition(said(1, 5, 300, is_acceptable=False), said(2, 5, 200))
    assert price(choice(found, "aggressive")) == (2, 100, True)


# the call


def answered(call: Conversation[Described], *responses: DescribeRecoveryResponse) -> tuple[list[Ask], Described]:
    asks = [next(call)]
    for response in responses[:-1]:
        asks.append(call.send(response))
    with pytest.raises(StopIteration) as end:
        call.send(responses[-1])
    return asks, end.value.value


def test_a_description_comes_page_by_page() -> None:
    first = DescribeRecoveryResponse(
        manager_enabled=True,
        topics=[Topic(name="a", partitions=[Partition(partition_index=0)])],
        next_cursor=DescribeRecoveryResponse.Cursor(topic_name="a", partition_index=1),
    )
    second = DescribeRecoveryResponse(
        manager_enabled=True,
        topics=[
            Topic(name="a", partitions=[Partition(partition_index=1)]),
            Topic(name="b", partitions=[Partition(partition_index=0)]),
        ],
    )
    asks, found = answered(describe_recovery({"b": [0], "a": None}, ask_replicas=True), first, second)
    assert found.manager_enabled
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in found.topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]
    assert [(topic.name, topic.partitions) for topic in asks[0].message.topics] == [("a", None), ("b", [0])]
    assert (asks[1].message.cursor.topic_name, asks[1].message.cursor.partition_index) == ("a", 1)
    assert asks[1].message.ask_replicas


def test_a_cursor_that_does_not_go_on_is_refused() -> None:
    page = DescribeRecoveryResponse(next_cursor=DescribeRecoveryResponse.Cursor(topic_name="a", partition_index=1))
    call = describe_recovery()
    next(call)
    call.send(page)
    with pytest.raises(KafkaError, match="does not continue"):
        call.send(page)


def test_without_a_controller_it_is_asked_again_and_other_errors_end_it() -> None:
    call = describe_recovery()
    next(call)
    again = call.send(DescribeRecoveryResponse(error_code=ErrorCode.NOT_CONTROLLER))
    assert again.failure is not None and again.failure.code is ErrorCode.NOT_CONTROLLER
    with pytest.raises(KafkaError, match="not allowed"):
        call.send(
            DescribeRecoveryResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="not allowed")
        )
