"""The log start moves up on the leader, and the answer waits for the followers that live."""

from __future__ import annotations

from typing import Any

import pytest

from heirlog.pending import Pending
from heirlog.protocol.errors import ErrorCode
from heirlog.protocol.messages import DeleteRecordsRequest, FetchRequest

from .fakes import TOPIC_IDS, Rig, batch, context, state
from .test_replica_manager import restarted


def ask(rig: Rig, *offsets: tuple[int, int], topic: str = "foo", timeout_ms: int = 1000) -> Any:
    """`offsets`: partition and offset."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsRequest.DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in offsets
                ],
            )
        ],
        timeout_ms=timeout_ms,
    )
    return rig.broker.delete_records(request)


def outcomes(response: Any) -> list[tuple[str, int]]:
    return [(ErrorCode(p.error_code).name, p.low_watermark) for p in response.topics[0].partitions]


class Waiting:
    def __init__(self, answer: Any) -> None:
        assert isinstance(answer, Pending), answer
        self.pending = answer
        self.responses: list[Any] = []
        answer.then(self.responses.append)

    @property
    def outcomes(self) -> list[tuple[str, int]] | None:
        return outcomes(self.responses[0]) if self.responses else None


def follower_fetches(rig: Rig, replica: int, offset: int, log_start: int) -> None:
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, log_start_offset=log_start)
    request = FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=replica, replica_epoch=100 + replica),
        topics=[FetchRequest.FetchTopic(topic_id=TOPIC_IDS["foo"], partitions=[asked])],
    )
    rig.broker.fetch(request, context(17))


@pytest.fixture
def alone() -> Rig:
    """Leader of foo-0 without followers, ten committed records."""
    rig = Rig().started()
    rig.show(state([1]))
    rig.produce(1, batch(10))
    return rig


@pytest.fixture
def leader() -> Rig:
    """Leader of foo-0 on 1, 2 and 3, ten committed records."""
    rig = Rig().started()
    rig.show(state([1, 2, 3]))
    rig.produce(1, batch(10))
    for replica in (2, 3):
        follower_fetches(rig, replica, 10, 0)
    assert rig.partition().high_watermark == 10
    return rig


def test_without_followers_the_answer_comes_at_once(alone: Rig) -> None:
    assert outcomes(ask(alone, (0, 4))) == [("NONE", 4)]
    assert alone.partition().log.log_start_offset == 4
    response = alone.fetch(3)
    assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_minus_one_is_the_high_watermark(alone: Rig) -> None:
    assert outcomes(ask(alone, (0, -1))) == [("NONE", 10)]


def test_an_offset_that_is_gone_already_changes_nothing(alone: Rig) -> None:
    ask(alone, (0, 4))
    assert outcomes(ask(alone, (0, 2))) == [("NONE", 4)]
    assert alone.partition().log.log_start_offset == 4


@pytest.mark.parametrize("offset", [11, -2, 2**62])
def test_an_offset_outside_is_refused(alone: Rig, offset: int) -> None:
    assert outcomes(ask(alone, (0, offset))) == [("OFFSET_OUT_OF_RANGE", -1)]
    assert alone.partition().log.log_start_offset == 0


def test_records_above_the_high_watermark_stay(leader: Rig) -> None:
    leader.produce(1, batch(5))
    assert leader.partition().log.log_end_offset == 15
    assert outcomes(ask(leader, (0, 12))) == [("OFFSET_OUT_OF_RANGE", -1)]


def test_the_answer_waits_for_every_living_follower(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4)))
    follower_fetches(leader, 2, 10, 4)
    assert waiting.outcomes is None
    follower_fetches(leader, 3, 10, 3)
    assert waiting.outcomes is None
    follower_fetches(leader, 3, 10, 4)
    assert waiting.outcomes == [("NONE", 4)]


def test_the_low_watermark_may_be_above_what_was_asked(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4)))
    follower_fetches(leader, 2, 10, 6)
    follower_fetches(leader, 3, 10, 5)
    assert waiting.outcomes == [("NONE", 4)]


def test_a_fenced_follower_is_not_waited_for(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4)))
    follower_fetches(leader, 2, 10, 4)
    leader.set_broker(3, fenced=True)
    leader.publish()
    assert waiting.outcomes == [("NONE", 4)]


def test_a_follower_outside_the_isr_is_waited_for_while_it_lives(leader: Rig) -> None:
    leader.show(state([1, 2, 3], isr=[1, 2], partition_epoch=2))
    waiting = Waiting(ask(leader, (0, 4)))
    follower_fetches(leader, 2, 10, 4)
    assert waiting.outcomes is None


def test_time_up_says_so_and_how_far_it_came(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4), timeout_ms=1000))
    leader.env.advance(1000)
    assert waiting.outcomes == [("REQUEST_TIMED_OUT", 0)]
    assert leader.partition().log.log_start_offset == 4


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_waited_for(leader: Rig, timeout_ms: int) -> None:
    assert Waiting(ask(leader, (0, 4), timeout_ms=timeout_ms)).outcomes == [("REQUEST_TIMED_OUT", 0)]


def test_losing_the_leadership_ends_the_wait(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4)))
    leader.show(state([1, 2, 3], leader=2, leader_epoch=6, partition_epoch=2))
    assert waiting.outcomes == [("NOT_LEADER_OR_FOLLOWER", -1)]


def test_a_closed_connection_ends_the_wait(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4)))
    assert len(leader.broker.replicas.delayed.delete_records) == 1
    waiting.pending.abandon()
    assert len(leader.broker.replicas.delayed.delete_records) == 0


def test_each_partition_is_answered_for_itself(leader: Rig) -> None:
    leader.show(state([1]), index=1)
    leader.set_partition(state([2, 3], leader=2), index=2)
    leader.set_partition(state([1, 2], leader=2), index=3)
    leader.publish()
    answer = Waiting(ask(leader, (0, 4), (1, 0), (2, 0), (3, 0), (9, 0)))
    for replica in (2, 3):
        follower_fetches(leader, replica, 10, 4)
    assert answer.outcomes == [
        ("NONE", 4),
        ("NONE", 0),
        ("NOT_LEADER_OR_FOLLOWER", -1),
        ("NOT_LEADER_OR_FOLLOWER", -1),
        ("UNKNOWN_TOPIC_OR_PARTITION", -1),
    ]


def test_a_partition_given_twice_is_cut_once_where_the_last_item_says(leader: Rig) -> None:
    waiting = Waiting(ask(leader, (0, 4), (0, 3)))
    for replica in (2, 3):
        follower_fetches(leader, replica, 10, 3)
    assert waiting.outcomes == [("NONE", 3)]


def test_a_topic_that_deletes_nothing_is_refused(alone: Rig) -> None:
    alone.partition().log.config.delete_enabled = False
    assert outcomes(ask(alone, (0, 4))) == [("POLICY_VIOLATION", -1)]


def test_a_coordinators_topic_is_refused(alone: Rig) -> None:
    assert outcomes(ask(alone, (0, 4), topic="__consumer_offsets")) == [("INVALID_TOPIC_EXCEPTION", -1)]


def test_a_follower_takes_over_the_log_start(leader: Rig) -> None:
    partition = leader.show(state([1, 2, 3], leader=2, leader_epoch=6, partition_epoch=2))
    partition.follow(10, 7)
    assert partition.log.log_start_offset == 7


def test_the_log_start_survives_a_clean_restart(alone: Rig) -> None:
    ask(alone, (0, 4))
    again = restarted(alone)
    again.set_partition(state([1], leader_epoch=6))
    again.started()
    assert again.partition().log.log_start_offset == 4
