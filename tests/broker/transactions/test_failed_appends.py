"""Records that are not written, or not by this leadership; requests at once; clocks that jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heirlog.env import SendFailure
from heirlog.protocol.errors import ErrorCode

from ..fakes import answer_of, state
from .test_coordinator import CHANNEL, TRANSACTIONS, Coordinating, added, code, producer
from .test_transaction_version import Levelled


class Replicated(Levelled):
    """Two replicas; the ISR may be too small for a record."""

    def __init__(self, **properties: str) -> None:
        super().__init__([1, 2], **properties)
        self.set_config("min.insync.replicas", "2", TRANSACTIONS)
        self.publish()
        self.followed()
        self._partition_epoch = 5

    def isr(self, *members: int) -> None:
        self._partition_epoch += 1
        to = state([1, 2], list(members), leader_epoch=5, partition_epoch=self._partition_epoch)
        self.set_partition(to, TRANSACTIONS)
        self.publish()

    def committed(self, answer: Any) -> Any:
        self.followed()
        return answer

    def began(self, **more: Any) -> tuple[int, int]:
        """A producer with an open transaction."""
        me = producer(self.committed(self.init(**more)))
        assert added(self.committed(self.add(me, 0))) == ["NONE"]
        return me


@pytest.mark.parametrize("level", [0, 2])
def test_an_abort_that_is_not_written_costs_no_epoch(level: int) -> None:
    # KAFKA-9666: each failed attempt to fence would take an epoch
    rig = Replicated()
    rig.level(level)
    me = rig.began(timeout_ms=60_000)
    rig.isr(1)
    for _ in range(3):
        assert code(rig.init()) == "COORDINATOR_NOT_AVAILABLE"
    rig.env.advance(100_000)
    assert (rig.state_name, rig.described().producer_epoch) == ("Ongoing", me[1])
    rig.isr(1, 2)
    rig.env.advance(10_000)
    rig.followed()
    (marker,) = rig.answer_markers().markers
    assert marker.producer_epoch == me[1] + 1


def test_of_two_requests_at_once_the_second_one_waits() -> None:
    rig = Replicated()
    me = producer(rig.committed(rig.init()))
    requests: list[Callable[[], Any]] = [
        lambda: rig.init(),
        lambda: rig.init(given=(me[0], rig.described().producer_epoch)),
    ]
    for first in requests:
        for second in requests:
            before = rig.described().producer_epoch
            begun = first()
            assert code(second()) == "CONCURRENT_TRANSACTIONS"
            assert answer_of(begun) is None
            assert producer(rig.committed(begun)) == (me[0], before + 1)


def test_the_same_request_again_gets_the_same_epoch() -> None:
    rig = Replicated()
    me = producer(rig.committed(rig.init()))
    first = producer(rig.committed(rig.init(given=me)))
    again = producer(rig.committed(rig.init(given=me)))
    assert first == again == (me[0], me[1] + 1)


def test_what_was_loaded_for_a_leadership_that_ended_is_dropped() -> None:
    rig = Replicated()
    me = rig.began()
    rig.init("another")
    rig.lead(6)
    assert code(rig.init()) == "COORDINATOR_LOAD_IN_PROGRESS"
    rig.lead(7, leader=2)
    rig.env.advance(100)
    assert code(rig.init()) == "NOT_COORDINATOR"
    rig.lead(8)
    assert code(rig.end(me)) == "COORDINATOR_LOAD_IN_PROGRESS"
    rig.fetch(rig.partition(TRANSACTIONS).log.log_end_offset, replica=2, leader_epoch=8, topic=TRANSACTIONS)
    rig.env.advance(10)
    assert rig.state_name == "Ongoing"
    rig.delete_topic(TRANSACTIONS)
    rig.publish()
    assert code(rig.end(me)) == "NOT_COORDINATOR"


def test_the_next_coordinator_sends_the_markers_of_an_abort() -> None:
    rig = Coordinating()
    me = producer(rig.init())
    rig.add(me, 0)
    rig.end(me, commit=False)
    late = rig.env.take(CHANNEL)
    rig.lead(6, leader=2)
    rig.lead(7)
    rig.env.advance(10)
    late.on_result(SendFailure("disconnected"))
    assert rig.answer_markers().markers[0].transaction_result is False
    assert rig.state_name == "CompleteAbort"


def test_a_completion_is_left_to_the_next_coordinator() -> None:
    rig = Replicated()
    me = rig.began()
    rig.committed(rig.end(me))
    rig.isr(1)
    rig.answer_markers()
    rig.lead(6, leader=2)
    end_offset = rig.partition(TRANSACTIONS).log.log_end_offset
    rig.env.advance(60_000)
    assert rig.partition(TRANSACTIONS).log.log_end_offset == end_offset
    assert rig.broker.transactions.waiting_completions == 0


def test_a_partition_whose_disk_failed_is_not_coordinated_here() -> None:
    rig = Coordinating(transactional_id_expiration_ms="1000")
    me = producer(rig.init())
    rig.broker.replicas.storage_failed(rig.partition(TRANSACTIONS), OSError("the disk is gone"))
    rig.env.advance(2 * 3_600_000)
    assert code(rig.end(me)) == "NOT_COORDINATOR"


def test_a_clock_that_is_set_back_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Coordinating()
    now_ms = rig.env.wall_ms()

    def back() -> None:
        nonlocal now_ms
        now_ms -= 3_600_000
        monkeypatch.setattr(rig.env, "wall_ms", lambda: now_ms)

    for commit in (True, False):
        me = producer(rig.init())
        back()
        assert added(rig.add(me, 0)) == ["NONE"]
        back()
        assert added(rig.add(me, 1)) == ["NONE"]
        back()
        assert code(rig.end(me, commit=commit)) == "NONE"
        back()
        rig.answer_markers()
        assert rig.state_name == ("CompleteCommit" if commit else "CompleteAbort")
    back()
    rig.env.advance(60_000)
    assert rig.described().error_code == ErrorCode.NONE
